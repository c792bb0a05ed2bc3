"""MetaSchedule: it gets our definitions, and a plain message stands where TVM is missing."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from ansorpy.errors import MissingDependency, VerificationFailed
from benchmarks.ops.suite import case_named, cases
from benchmarks.race import tvm_engine
from benchmarks.race.te import relax_module, te_tensors
from benchmarks.race.tvm_engine import tune_with_tvm
from benchmarks.study.tuned import Subject
from tests.graph.nets import Net


def test_without_tvm_a_message_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tvm", None)
    monkeypatch.setenv("TVM_NUM_THREADS", "1")
    with pytest.raises(MissingDependency, match="MetaSchedule does not race, since TVM is not"):
        tune_with_tvm(Subject("CALL.16", 1, tmp_path), 4, tmp_path / "x.so")


def test_nothing_of_an_earlier_run_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tvm", None)
    monkeypatch.setenv("TVM_NUM_THREADS", "1")
    (tmp_path / "x.work").mkdir()
    (tmp_path / "x.work" / "database_workload.json").write_text("{}")
    (tmp_path / "x.so").write_bytes(b"")
    with pytest.raises(MissingDependency):
        tune_with_tvm(Subject("CALL.16", 1, tmp_path), 4, tmp_path / "x.so")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_networks_outputs_are_compared(
    factor: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    net = Net(x=(4, 8))
    path = tmp_path / "net.onnx"
    onnx.save(net.model(net.op("Relu", "x")), path)

    class Held:
        def __init__(self, value: np.ndarray) -> None:
            self.numpy = lambda: value

    def main(x: Held) -> Held:
        return Held(np.maximum(x.numpy(), 0) * np.float32(factor))

    tvm = SimpleNamespace(
        __version__="0", cpu=lambda: None,
        relax=SimpleNamespace(VirtualMachine=lambda module, device: {"main": main}),
        runtime=SimpleNamespace(load_module=lambda library: None, tensor=Held),
    )  # fmt: skip
    for name in ("", ".relax", ".relax.frontend.onnx", ".s_tir.meta_schedule", ".te"):
        monkeypatch.setitem(sys.modules, f"tvm{name}", tvm)
    monkeypatch.setenv("TVM_NUM_THREADS", "1")
    with nullcontext() if factor == 1.0 else pytest.raises(VerificationFailed, match="1 of 1"):
        tvm_engine.TvmModel(str(path), library="x.so", threads=1)


def test_every_case_is_a_function_of_tvm() -> None:
    tvm = pytest.importorskip("tvm", reason="TVM is not installed")
    for case in cases():
        function = tvm.te.create_prim_func(te_tensors(case.dag, tvm))
        assert len(function.params) == len(case.dag.args) + 1


def test_stages_are_a_network_of_tvm() -> None:
    tvm = pytest.importorskip("tvm", reason="TVM is not installed")
    case = case_named("ATT.128x12x64")
    module = relax_module(case.dag, tvm)
    assert len(module["main"].params) == len(case.dag.args)
    assert len(module.get_global_vars()) == len(case.dag.computes) + 1
