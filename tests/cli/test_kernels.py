"""Kernels with a schedule for each part of the sizes: shown, proved and profiled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import ansorpy as ap
from ansorpy.api.evaluate import bench
from ansorpy.api.evaluate.engine import Ours, sendable
from ansorpy.cli.main import main
from ansorpy.evaluation.bench.turns import Timing
from ansorpy.ir.extents import Extent
from ansorpy.ir.tensor import Tensor
from ansorpy.measure.records.database import Database
from ansorpy.size_ranges import SizeRange
from tests.graph.nets import Net

pytestmark = pytest.mark.usefixtures("few_sizes")


def doubled(n: Extent) -> list[Tensor]:
    x = ap.placeholder((n, 24), name="x")
    return [x, ap.compute((n, 24), lambda i, j: x[i, j] * 2.0, name="y")]


@pytest.fixture
def library(tmp_path: Path) -> str:
    """A kernel with one schedule below 7 rows, and another one up to 35."""
    few = ap.State.initial(doubled(ap.dim("n", 0, 6)))
    many, (outer, _) = ap.State.initial(doubled(ap.dim("n", 7, 35))).split(
        "y", "i", (7,), tail="shift"
    )
    kernel = ap.build([few, many.parallel("y", [outer])], threads=2)
    return str(kernel.export(tmp_path / "twice.so"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a network of a kernel that two dimensions reach, and one that one reaches."""
    folder = tmp_path_factory.mktemp("kernels")
    net = Net(x=("rows", 11), y=("cols", 11), bias=(11,))
    weights, shift = net.normal(11, 11), net.constant(0.5)
    ends = [net.relu(net.op("MatMul", end, weights)) for end in ("x", "y")]
    model = net.model(ends[0], net.op("Softmax", ends[1], axis=0), net.op("Add", "bias", shift))
    onnx.save(model, folder / "net.onnx")
    return folder


def asked(verb: str, folder: Path, *more: str) -> list[str]:
    return [
        verb, str(folder / "net.onnx"), "--threads", "1", "--db", str(folder / "t.db"),
        "--dim", "rows=1..5", "--dim", "cols=1..5", *more,
    ]  # fmt: skip


def test_a_library_shows_each_schedule_below_its_sizes(
    library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", library]) == 0
    printed = capsys.readouterr().out
    listed, loops = printed.split("\n\n")
    reach, kernels = listed.split("\nkernels\n")
    assert reach.splitlines()[2].split("  ")[0] == "n=0..35"
    assert [line.split()[-1] for line in kernels.splitlines()] == ["sizes", "n=0..6", "n=7..35"]
    few, many = loops.split("n=7..35:\n")
    assert "n=0..6:\nplaceholder x\nfor i in 0..n\n" in few
    assert "for i.0 in 0..(n + 6)//7  # parallel" in many and loops.count("y[i, j] = ...") == 2
    assert main(["show", library, "--task", "0", "--as", "steps", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["dims"][0]["inputs"] == ["x"] and data["dims"][0]["outputs"] == ["y"]
    [kernel] = data["kernels"]
    assert [(part["dims"][0]["low"], part["dims"][0]["high"]) for part in kernel["parts"]] == [
        (0, 6), (7, 35),
    ]  # fmt: skip
    assert kernel["parts"][0]["steps"] == "" and "split" in kernel["parts"][1]["steps"]


def test_what_a_library_cannot_show(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", library, "--as", "asm"]) == 2
    assert "a kernel of a library cannot be shown as 'asm'" in capsys.readouterr().err
    assert main(["show", library, "--task", "conv"]) == 2
    assert "no kernel 'conv'" in capsys.readouterr().err
    for given in (["--dim", "n=7"], ["--bound", "n=7"], ["--const", "k=7"], ["--alias", "y=x"]):
        assert main(["show", library, *given]) == 2
        said = capsys.readouterr().err
        assert "which is shown for all of its sizes" in said and f"leave out {given[0]}\n" in said


def test_equal_texts_of_parts_are_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [ap.State.initial(doubled(ap.dim("n", *ends))) for ends in ((0, 6), (7, 35))]
    path = str(ap.build(parts, threads=1).export(tmp_path / "twice.so"))
    assert main(["show", path]) == 0
    assert "n=0..6 and n=7..35:\nplaceholder x\n" in capsys.readouterr().out


def test_all_parts_are_proved_for_their_sizes(
    library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--static", library, "--json"]) == 0
    programs = json.loads(capsys.readouterr().out)["programs"]
    assert [program["name"].partition("[")[2] for program in programs] == ["n=0..6]", "n=7..35]"]
    assert all(program["proved"] and not program["undecided"] for program in programs)


def test_dimensions_reach_the_kernels_of_all_their_calls(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked("compile", folder, "-o", str(folder / "net.so"), "--effort", "none")) == 0
    assert "rows=1..5  x" in capsys.readouterr().err
    for command in (["show", str(folder / "net.so")], asked("show", folder)):
        assert main([*command, "--json"]) == 0
        rows, cols = json.loads(capsys.readouterr().out)["dims"]
        assert (rows["name"], rows["low"], rows["high"], rows["step"]) == ("rows", 1, 5, 1)
        assert rows["inputs"] == ["x"] and cols["inputs"] == ["y"]
        assert len(rows["outputs"]) == len(cols["outputs"]) == 1
        [product] = rows["kernels"]
        assert cols["kernels"][0] == product and "softmax" in cols["kernels"][1]


def test_a_tuned_network_shows_its_kernels_beside_its_tasks(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Database(tmp_path / "none.db"):
        pass
    assert main(asked("show", folder, "--db", str(tmp_path / "none.db"))) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("dimensions\n") and "\nkernels\n" not in printed
    assert "before compilation" in printed
    assert main(asked("tune", folder, "--trials-per-task", "1")) == 0
    capsys.readouterr()
    assert main(asked("show", folder, "--json")) == 0
    data = json.loads(capsys.readouterr().out)
    [product] = [kernel for kernel in data["kernels"] if kernel["calls"] == 2]
    assert product["dims"] == ["rows", "cols"] and data["memory"]["workspace_bytes"] is not None
    assert [part["dims"][0]["high"] for part in product["parts"]][-1] == 5
    assert main(asked("show", folder)) == 0
    printed = capsys.readouterr().out
    assert f"{product['name']}[rows=" in printed and "sizes\n" in printed
    assert main(asked("show", folder, "--task", product["name"])) == 0
    assert capsys.readouterr().out.startswith(f"{product['name']}\nrows=1..")
    assert main(asked("show", folder, "--task", product["name"], "--as", "asm", "--json")) == 0
    assert "ret" in json.loads(capsys.readouterr().out)["parts"][0]["asm"]


def test_each_size_has_a_profile(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    timing = {"ansorpy": Timing("1", 0, [[1e-3]], [1e-3])}
    monkeypatch.setattr(bench, "compare_sizes", lambda c, sizes, **options: [timing] * len(sizes))
    command = ["bench", str(folder / "net.onnx"), "--threads", "1", "--db", str(folder / "t.db"),
               "--dim", "rows=2,5", "--dim", "cols=3", "--profile"]  # fmt: skip
    assert main([*command, "--json"]) == 0
    few, many = json.loads(capsys.readouterr().out.splitlines()[-1])["sizes"]
    assert (few["dims"]["rows"], many["dims"]["rows"]) == (2, 5)
    assert len(few["calls"]) == len(many["calls"]) > 2
    assert all(call["inside_s"] >= 0 for row in (few, many) for call in row["calls"])
    assert few["calls"][0]["least_s"] <= many["calls"][0]["least_s"]
    assert main(command) == 0
    sections = capsys.readouterr().out
    assert sections.index("\nrows=2, cols=3\nkernel") < sections.index("\nrows=5, cols=3\nkernel")


def test_our_engine_takes_ranges_as_they_are_sent(folder: Path) -> None:
    given = sendable({
        "threads": 1, "db": str(folder / "t.db"), "dims": {"rows": SizeRange(2, 5), "cols": 3},
    })  # fmt: skip
    sent = json.loads(json.dumps(given))
    assert sent["dims"] == {"rows": "2..5", "cols": 3}
    shapes = {"x": (4, 11), "y": (3, 11), "bias": (11,)}
    engine = Ours(str(folder / "net.onnx"), arguments=sent, shapes=shapes)
    engine.run()
    assert {np.shape(output) for output in engine.outputs().values()} == {(4, 11), (3, 11), (11,)}
