"""What the command line says of GPUs on a machine that has none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from ansorpy.cli.main import main
from ansorpy.target import Target
from tests.codegen.cuda.compiling import needs_nvrtc


@pytest.fixture
def net(tmp_path: Path) -> str:
    if Target.parse("sm_90").gpus() or Target.parse("sm_80").gpus():
        pytest.skip("this machine has a GPU")
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "small",
        [info("x", TensorProto.FLOAT, [4, 8])],
        [info("y", TensorProto.FLOAT, [4, 8])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    onnx.save(model, tmp_path / "net.onnx")
    return str(tmp_path / "net.onnx")


@pytest.mark.parametrize("target", ["cuda", "sm_90"])
def test_tuning_for_a_gpu_that_is_not_here_ends_with_5(net, target, tmp_path, capfd):
    db = str(tmp_path / "tune.db")
    assert main(["tune", net, "--target", target, "--trials", "4", "--db", db]) == 5
    said = " ".join(capfd.readouterr().err.split())
    assert "cupy, which is not installed" in said or "no CUDA device" in said
    assert "sm_90" in said


@needs_nvrtc
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_library_is_compiled_without_a_gpu(net, tmp_path, capfd):
    library = str(tmp_path / "net.so")
    assert main(["compile", net, "--target", "sm_90", "--effort", "none", "-o", library]) == 0
    assert main(["run", library, "--input", "x=random"]) == 5  # the driver is missing
    assert "libcuda.so.1" in capfd.readouterr().err


@needs_nvrtc
def test_programs_for_a_gpu_are_shown(net, capfd):
    shown = ["show", net, "--target", "sm_90", "--task", "0"]
    for form, line in {"cuda": "__global__", "ptx": ".entry kernel"}.items():
        assert main([*shown, "--as", form]) == 0
        assert line in capfd.readouterr().out


@needs_nvrtc
def test_what_limits_the_calls_of_a_network_is_predicted(net, capfd):
    shown = ["show", net, "--target", "sm_90", "--limits"]
    assert main(shown) == 0
    text = capfd.readouterr().out
    assert "us predicted" in text and "launches" in text and "arena 0 B" in text
    assert main([*shown, "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    [call] = told["calls"]
    assert call["bound"] == "launches" and call["kernels"] == 1 and call["alone_s"] is None
    assert call["predicted_s"] >= call["launch_s"] > call["memory_s"] > 0
    assert told["memory"]["port_bytes"] == 256


def test_sizes_are_needed_to_tell_what_limits_a_network(net, capfd):
    model = onnx.load(net)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "n"
    onnx.save(model, net)
    assert main(["show", net, "--dim", "n=1..8", "--limits"]) == 2
    assert "give each a size, with --dim NAME=N" in " ".join(capfd.readouterr().err.split())


@needs_nvrtc
def test_calls_are_not_timed_without_a_gpu(net, capfd):
    assert main(["bench", net, "--target", "sm_90", "--profile"]) == 2
    assert "compiled for another machine" in capfd.readouterr().err


def test_a_form_that_programs_for_a_gpu_do_not_have(net, capfd):
    assert main(["show", net, "--target", "sm_90", "--task", "0", "--as", "llvm"]) == 2
    said = " ".join(capfd.readouterr().err.split())
    assert "a program for sm_90 cannot be shown as 'llvm'" in said
    assert "use one of definition, nest, steps, program, cuda, ptx" in said
