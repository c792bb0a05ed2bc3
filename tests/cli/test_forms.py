"""Networks in every form that a library can have: each computes what the shared library does."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from llvmlite import binding

import ansorpy as ap
from ansorpy.cli.main import main
from ansorpy.runtime.library.forms import Form, Pack
from tests.frontend.models import graph_model, node

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


FORMS = (Form.SO, Form.A, Form.O, Form.ASM, Form.LL)


@pytest.fixture
def net(tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> str:
    """A convolution and a product, in a folder that is the working folder."""
    constants = {
        "w": rng.standard_normal((7, 3, 3, 3)).astype(np.float32),
        "m": rng.standard_normal((5, 70)).astype(np.float32),
    }
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("MatMul", ["r", "m"], ["y"]),
    ]
    onnx.save(graph_model(nodes, {"x": (1, 3, 6, 5)}, ["y"], constants), tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    return "net.onnx"


def printed(*files: str) -> str:
    """What the example of ``net`` prints when it is linked with *files*."""
    command = ["cc", "-O1", "net_example.c", *files, "-o", "example", "-lm", "-pthread"]
    subprocess.run([*command, "-Wl,-rpath,$ORIGIN"], check=True)
    return subprocess.run(["./example", "2"], check=True, capture_output=True, text=True).stdout


def test_a_process_that_compiled_nothing_writes_assembly(net: str) -> None:
    """LLVM must read inline assembly there, too; records spare it all other code."""
    options = [net, "--db", "own.db", "--threads", "1"]
    assert main(["compile", *options, "--effort", "none", "-o", "net.so"]) == 0
    export = [sys.executable, "-m", "ansorpy", "export", *options, "-o", "net.s", "-q"]
    ended = subprocess.run(export, check=True, stdout=subprocess.PIPE, text=True)
    assert "net_run" in Path("net.s").read_text()
    assert ended.stdout.startswith("wrote net.s\n")
    *_, files, following = ended.stdout.splitlines()
    assert files == "header net.h, example net_example.c, records in own.db"
    subprocess.run(following.removeprefix("next: "), shell=True, check=True)
    assert Path("example").exists()


def test_an_operator_has_all_forms(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x, w = ap.placeholder((5, 7), name="x"), ap.placeholder((7, 3), name="w", constant=True)
    k = ap.reduce_axis(7, name="k")
    y = ap.compute((5, 3), lambda i, j: ap.sum(x[i, k] * w[k, j], axis=k), name="y")
    kernel = ap.build([x, w, y]).bind(w=rng.standard_normal((7, 3)).astype(np.float32))
    said = set()
    for form in FORMS:
        made = kernel.export(f"net{form.suffix}")
        said.add(printed(assembled(str(made)) if form is Form.LL else f"./{made.name}"))
    assert len(said) == 1


def assembled(listing: str) -> str:
    """An object of the LLVM IR in the file *listing*."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    module = binding.parse_assembly(Path(listing).read_text())
    machine = binding.Target.from_triple(module.triple).create_target_machine(reloc="pic")
    Path("listing.o").write_bytes(machine.emit_object(module))
    return "listing.o"


def test_all_forms_compute_the_same(net: str) -> None:
    wanted = ""
    for form, pack in zip(FORMS, itertools.cycle(Pack), strict=False):
        assert main(["export", net, "--threads", "2", "--emit", form, "--pack", pack]) == 0
        file = f"./net{form.suffix}"
        found = printed(assembled(file) if form is Form.LL else file)
        wanted = wanted or found
        assert len(wanted.splitlines()) == 8 and found == wanted, form


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--emit", "a", "-o", "net.so"], "net.so is not a name for --emit a"),
        (["--target", "c", "--emit", "a"], "programs in C cannot be written as net.a"),
        (["--target", "sm_90", "-o", "net.o"], "are written as shared libraries alone, not as"),
        (["--target", "x86-64-v2,x86-64-v3", "--emit", "c"], "net.c cannot have a version for c:w"),
        (["--emit", "c", "--pack", "at-init"], "do not pack their constants at init"),
        (["--target", "aarch64-linux-gnu", "--pack", "in-file", "--emit", "a"],
         "constants for aarch64-linux-gnu cannot be packed on this machine"),
    ],
)  # fmt: skip
def test_what_cannot_be_written(
    arguments: list[str], message: str, net: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", net, *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
