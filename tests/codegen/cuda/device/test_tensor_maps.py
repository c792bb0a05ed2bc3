"""Tensor maps need a driver; what it is given is checked by a fake one."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.tensor_maps import tensor_map
from ansorpy.codegen.cuda.launch.plan import BoxedTensor
from ansorpy.errors import CodegenError, MissingDependency
from tests.codegen.cuda.emulator import needs_compiler

FAKE = Path(__file__).parents[3] / "runtime" / "gpu" / "fake_libcuda.cpp"
FORM = BoxedTensor(2, (3, 70, 104), (1, 64, 32), 64)


def use(monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
    load = ctypes.CDLL
    monkeypatch.setattr(ctypes, "CDLL", lambda _: load(str(library)))


@needs_compiler
def test_maps_are_made_by_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libcuda.so.1"
    command = ["g++", "-std=c++17", "-shared", "-fPIC", str(FAKE), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    use(monkeypatch, library)
    found = tensor_map(0x7000, FORM)
    assert found.nbytes == 128 and found.ctypes.data % 64 == 0
    assert found.view(np.uint64)[0] == 0x7000  # as the fake driver notes it
    with pytest.raises(CodegenError, match=r"refuses to copy \(3, 70, 104\) in boxes"):
        tensor_map(0x7008, FORM)


def test_an_old_driver_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tmp_path / "missing.so")
    with pytest.raises(MissingDependency, match="the CUDA driver has no tensor maps"):
        tensor_map(0x7000, FORM)
