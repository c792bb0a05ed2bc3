"""Networks as C from the command line: written, compiled, and the same as the reference."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

from ansorpy.cli.main import main
from ansorpy.codegen.c.compiler import find_compiler
from tests.codegen.c.compiled import needs_cc
from tests.frontend.models import graph_model, node

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def net(tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> str:
    """A convolution, a pooling and a product, in a folder that is the working folder."""
    constants = {
        "w": rng.standard_normal((6, 3, 3, 3)).astype(np.float32),
        "m": rng.standard_normal((6, 5)).astype(np.float32),
    }
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("GlobalAveragePool", ["r"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("MatMul", ["f", "m"], ["y"]),
    ]
    onnx.save(graph_model(nodes, {"x": (1, 3, 7, 5)}, ["y"], constants), tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    return "net.onnx"


def assert_verified(source: str, net: str, *flags: str) -> None:
    """The C file *source*, compiled, computes what *net* does."""
    command = [*find_compiler().command, "-std=c11", "-O1", "-shared", "-fPIC", *flags]
    subprocess.run([*command, source, "-o", "compiled.so", "-lm"], check=True)
    assert main(["verify", "compiled.so", "--model", net, "--against", "reference"]) == 0


@needs_cc
def test_programs_chosen_for_this_machine_are_exported_as_c(net: str) -> None:
    assert main(["export", net, "--emit", "c", "--threads", "2"]) == 0
    assert Path("net.c").exists() and Path("net.h").exists()
    assert_verified("net.c", net)  # without -fopenmp, its parallel loops are serial


@needs_cc
def test_a_network_is_compiled_for_a_machine_with_small_words(net: str) -> None:
    target = "c:word=32,l1=16KiB,l2=0"
    assert main(["compile", net, "--target", target, "--effort", "none", "-o", "mcu.c"]) == 0
    assert_verified("mcu.c", net)


@pytest.mark.parametrize("verb", ["export", "compile --effort none"])
def test_c_is_the_default_form_of_its_target(
    verb: str, net: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("net.c").mkdir()
    assert main([*verb.split(), net, "--target", "c:word=32"]) == 2
    assert "/net.c" in capsys.readouterr().err


def test_the_command_after_tuning_writes_c(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, db = tmp_path / "one.onnx", str(tmp_path / "t.db")
    onnx.save(graph_model([node("Relu", "x", "y")], {"x": (3, 7)}, ["y"]), model)
    assert main(["tune", str(model), "--target", "c", "--effort", "none", "--db", db]) == 0
    assert f"next: ansorpy export {model} -o one.c " in capsys.readouterr().out


def test_its_programs_are_shown_as_c(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", net, "--target", "c", "--task", "0", "--as", "c"]) == 0
    assert "int32_t kernel(void *const *args" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--emit", "c", "-o", "net.so"], "net.so is not a name for --emit c"),
        (["--emit", "c", "--target", "sm_90"], "programs for sm_90 cannot be written as C"),
        (["--target", "c:word=8"], "word=8 of target 'c:word=8' is none of 32, 64"),
    ],
)
def test_what_cannot_be_written(
    arguments: list[str], message: str, net: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", net, *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
