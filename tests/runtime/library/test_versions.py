"""Libraries with several versions of a program: ``init`` takes one that this CPU can run."""

from __future__ import annotations

import ctypes
import errno
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansorpy.errors import MissingDependency, UsageError
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.export import export, export_versions
from ansorpy.runtime.library.forms import Pack
from ansorpy.runtime.library.storage import Contents, stored
from ansorpy.runtime.model import load
from ansorpy.runtime.planner import plan_network
from ansorpy.target import Target
from tests.runtime import programs
from tests.runtime.test_export import Layers, needs_cc

pytestmark = [needs_cc, pytest.mark.skipif("x86" not in Target.host().triple, reason="needs x86")]
HOST = Target.host()
OTHER = replace(HOST, features=f"{HOST.features},+avx512er,+xop", name="other")
"""No CPU has both AMD's XOP (Bulldozer) and AVX-512 ER (Xeon Phi)."""


def plans(targets: Sequence[Target], layers: Layers) -> list[ExecutionPlan]:
    net = programs.network(layers)
    return [
        plan_network(net, programs.tasks(net, target), target=target, threads=2)
        for target in targets
    ]


@pytest.mark.parametrize("pack", Pack)
def test_init_takes_the_version_that_runs_here(
    pack: Pack, rng: np.random.Generator, tmp_path: Path
) -> None:
    """Each has other constants here, so that the results tell which one ran."""
    x, small = programs.feed(rng), Target.parse("x86-64-v2")
    for targets, chosen in (((small, HOST), 1), ((OTHER, small), 1), ((small, OTHER, HOST), 2)):
        if pack is Pack.IN_FILE and OTHER in targets:
            continue  # what this machine cannot run, it cannot pack
        layers = [[programs.constants(rng), programs.constants(rng)] for _ in targets]
        made = [plans([t], own)[0] for t, own in zip(targets, layers, strict=True)]
        model = load(export_versions(made, tmp_path / "net.so", pack))
        results = model.run(None, {"x": x})
        for result, expected in zip(results, programs.expected(layers[chosen], x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_calls_before_init_and_without_a_version(rng: np.random.Generator, tmp_path: Path) -> None:
    layers = [programs.constants(rng), programs.constants(rng)]
    path = export_versions(plans([OTHER, replace(OTHER, name="more")], layers), tmp_path / "net.so")
    library = ctypes.CDLL(str(path))
    assert library.net_plan(None, None, 1, None) == 2  # init was not called
    assert library.net_init() == 1  # this CPU runs none
    with pytest.raises(MissingDependency, match="instructions this machine lacks.*avx512er"):
        load(path)


def test_constants_are_shared(rng: np.random.Generator, tmp_path: Path) -> None:
    layers = [programs.constants(rng), programs.constants(rng)]
    both = plans([Target.parse("x86-64-v2"), HOST], layers)
    contents = Contents("net_constants")
    for plan in both:
        contents.add(stored(plan, Pack.AT_INIT, "net", 2))
    one = Contents("net_constants")
    one.add(both[0])
    assert contents.size == one.size  # all of it as the model has it


def test_forms_have_versions_too(rng: np.random.Generator, tmp_path: Path) -> None:
    layers = [programs.constants(rng), programs.constants(rng)]
    both = plans([Target.parse("x86-64-v2"), HOST], layers)
    path = export_versions(both, tmp_path / "net.a")
    alone = export(both[1], tmp_path / "one.a")
    assert path.stat().st_size < 2.5 * alone.stat().st_size
    assert shutil.which("ar") is None or b"dispatch.o/" in path.read_bytes()


def test_versions_are_for_x86(rng: np.random.Generator, tmp_path: Path) -> None:
    layers = [programs.constants(rng), programs.constants(rng)]
    both = plans([HOST, Target.parse("aarch64-linux-gnu")], layers)
    with pytest.raises(UsageError, match="net.a cannot have a version for aarch64-linux-gnu"):
        export_versions(both, tmp_path / "net.a")


def test_a_full_disk_is_an_error_of_the_file(
    rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = [programs.constants(rng), programs.constants(rng)]

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"No space left on device: .*net\.so"):
        export_versions(plans([Target.parse("x86-64-v2"), HOST], layers), tmp_path / "net.so")
