"""Every backend has a row in the table of each layer."""

from __future__ import annotations

from typing import Any

import pytest

from ansorpy.codegen.backends import CODEGEN
from ansorpy.cost.analytic.hardware import HARDWARE
from ansorpy.measure.devices import DEVICES
from ansorpy.registry import Registry
from ansorpy.rules.presets import PRESETS
from ansorpy.runtime.backends import RUNTIMES
from ansorpy.target import TARGET_KINDS, Target

TABLES: tuple[Registry[Any], ...] = (
    TARGET_KINDS, CODEGEN, PRESETS, DEVICES, HARDWARE, RUNTIMES
)  # fmt: skip


def test_the_tables_have_the_same_rows() -> None:
    assert {tuple(sorted(table)) for table in TABLES} == {("c", "cuda", "llvm")}


@pytest.mark.parametrize("backend", list(TARGET_KINDS))
def test_every_row_can_be_loaded(backend: str) -> None:
    assert all(table.one(backend) is not None for table in TABLES)
    assert "default" in {preset.name for preset in PRESETS.one(backend)}


@pytest.mark.parametrize(
    ("name", "backend"), [("x86-64-v3", "llvm"), ("host", "llvm"), ("sm_90", "cuda"), ("c", "c")]
)
def test_a_target_names_its_backend(name: str, backend: str) -> None:
    assert Target.parse(name).backend == backend
