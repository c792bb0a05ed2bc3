"""Sizes that ``bench`` is asked for: lists, combinations, and the shapes that follow."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import onnx
import pytest

import ansorpy as ap
from ansorpy import config
from ansorpy.api.evaluate import bench, libraries, models, sizes
from ansorpy.api.evaluate.engine import Ours
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.sizes import points_of
from ansorpy.cli import next_command, peers
from ansorpy.cli.main import main
from ansorpy.errors import UsageError
from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.result import Comparison
from ansorpy.evaluation.bench.turns import Timing
from ansorpy.evaluation.engines.protocol import open_peer, open_peer_at
from ansorpy.evaluation.inputs import port_shapes
from ansorpy.measure.records.database import Database
from ansorpy.runtime.ports import Port
from ansorpy.size_ranges import AnySize, SizeRange
from ansorpy.target import Target
from benchmarks.dynamic.suite import TINY
from tests.frontend.models import graph_model, node

F32 = np.dtype(np.float32)


def test_lists_of_sizes_are_combined_and_ranges_sampled() -> None:
    points = points_of({"batch": "1,3", "seq len": "7,0,7"})
    assert [tuple(point.values()) for point in points] == [(1, 0), (1, 7), (3, 0), (3, 7)]
    assert set(points[0]) == {"batch", "seq len"} and points_of({}) == [{}]
    assert points_of({"n": (1, 512)}) == [{"n": 1}, {"n": 23}, {"n": 512}]
    assert points_of({"n": 7, "m": (4, 8, 4)}) == [{"n": 7, "m": 4}, {"n": 7, "m": 8}]


def test_ports_at_sizes() -> None:
    n = ap.dim("n", 0, 40, step=5)
    ports = [Port("x", (1, n, n // 2 + 3), F32), Port("y", (7,), F32)]
    assert port_shapes(ports, {"n": 35, "m": 2}) == {"x": (1, 35, 20), "y": (7,)}
    assert port_shapes(ports[1:], {}) == {"y": (7,)}
    same: tuple[Any, ...] = ("35", np.int64(35), [35])
    for size in same:
        assert port_shapes(ports, {"n": size})["x"] == (1, 35, 20)
    wrong: tuple[tuple[Mapping[str, AnySize], str], ...] = (
        ({}, "not given"),
        ({"n": 45}, "45"),
        ({"n": 7}, "7"),
        ({"n": SizeRange(0, 9)}, "0..9"),
    )
    for chosen, given in wrong:
        with pytest.raises(UsageError, match=f"input 'x' takes 1xnx.* but n is {given}") as caught:
            port_shapes(ports, chosen)
        assert caught.value.hint == "give a size in n=0..40:step=5 with --dim n=N (dims= in Python)"


@pytest.fixture
def described() -> SimpleNamespace:
    """The metadata of a library whose input has 5 to 40 rows."""
    rows = ap.dim("rows", 5, 40)
    return SimpleNamespace(
        input_ports=(Port("x", (1, rows, 3), F32),), named_dims={"rows": rows}, threads=1,
        median_ms=None, target=SimpleNamespace(is_gpu=False),
    )  # fmt: skip


@pytest.fixture
def library(described: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What looks like the library *described*."""
    path = tmp_path / "net.so"
    path.write_bytes(b"\x7fELF")
    for home in (libraries, models, sizes, bench, next_command):
        monkeypatch.setattr(home, "read_library", lambda path: (described, None))
    return str(path)


@pytest.mark.parametrize("version", ["", ".1"])
def test_the_next_command_states_a_size_of_each_dimension(library: str, version: str) -> None:
    """Without one, verbs refuse the library."""
    path, lookup = Path(library + version), Lookup(Path("net.onnx"), threads=1)
    said = next_command.after_library(path, lookup, 1)
    assert said.startswith(f"ansorpy bench {path} ")
    assert said.endswith(" --threads 1 --dim rows=14")


def test_the_next_command_asks_no_peer_for_operators_of_a_plugin(library: str) -> None:
    lookup = Lookup(Path("net.onnx"), threads=1, plugins=["operators.py"])
    said = next_command.after_library(Path(library), lookup, 1)
    assert said == f"ansorpy run {library} --dim rows=14"


@pytest.mark.parametrize("form", ["a", "c", "s"])
def test_the_next_command_builds_an_example_of_any_name(form: str) -> None:
    path, lookup = Path(f"some where/my  net.{form}"), Lookup(Path("net.onnx"), threads=1)
    folder, command = next_command.after_library(path, lookup, 1).split(" && ")
    assert shlex.split(folder) == ["cd", "some where"]
    assert shlex.split(command)[:4] == ["cc", "-O2", "my  net_example.c", f"my  net.{form}"]


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[Contender]:
    """The engines that ``bench`` compares; each takes a millisecond, nothing runs."""
    asked: list[Contender] = []

    def at_sizes(
        contenders: Sequence[Contender], sizes: Mapping[int, str], **options: Any
    ) -> Iterator[dict[str, Timing]]:
        asked[:] = contenders
        for _ in sizes:
            yield {c.name: Timing("1", 0, [[1e-3]], [1e-3]) for c in contenders}

    def at_one(contenders: Sequence[Contender], **options: Any) -> dict[str, Timing]:
        asked[:] = contenders
        return {c.name: Timing("1", 0, [[1e-3]], [1e-3]) for c in contenders}

    monkeypatch.setattr(bench, "compare_sizes", at_sizes)
    monkeypatch.setattr(bench, "compare", at_one)
    return asked


def test_a_list_of_sizes_is_timed_size_by_size(
    library: str, timed: list[Contender], capsys: pytest.CaptureFixture[str]
) -> None:
    original = str(Path(library).with_suffix(".onnx"))
    onnx.save(graph_model([node("Relu", "x", "y")], {"x": (1, 7, 3)}, ["y"]), original)
    asked = ["bench", library, "--model", original, "--threads", "1", "--dim", "rows=5,7,40"]
    assert main([*asked, "--against", "openvino"]) == 0
    ours, theirs = timed
    assert ours.factory.endswith(":ours_at") and theirs.factory.endswith(":open_peer_at")
    shapes = [{"x": (1, rows, 3)} for rows in (5, 7, 40)]
    assert ours.arguments["sizes"] == theirs.arguments["sizes"] == shapes
    assert ours.arguments["arguments"]["dims"] == {"rows": 5}
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[2:5]] == ["5", "7", "40"]
    assert printed[5].split() == ["mean", "1.00x"] and "* ansorpy, + openvino" in printed[6]
    assert main([*asked, "--streams", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert data["streams"] == 2
    assert [row["dims"]["rows"] for row in data["sizes"]] == [5, 7, 40]
    assert list(data["sizes"][0]["engines"]) == ["ansorpy"]


@pytest.mark.parametrize(("is_gpu", "threads"), [(False, 1), (True, 2)])
def test_engines_have_the_threads_of_a_library(
    library: str, described: SimpleNamespace, timed: list[Contender], is_gpu: bool, threads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("ANSORPY_NUM_THREADS", raising=False)
    monkeypatch.setattr(config, "available_cores", lambda: 2)
    described.target.is_gpu, described.target.cpu = is_gpu, "sm_90"
    original = Path(library).with_suffix(".onnx")
    onnx.save(graph_model([node("Relu", "x", "y")], {"x": (1, 7, 3)}, ["y"]), original)
    found = ap.bench(library, original, against=["onnxruntime"], dims={"rows": 7})
    ours, theirs = timed
    assert ours.arguments["arguments"]["threads"] == theirs.arguments["threads"] == threads
    assert isinstance(found, Comparison) and found.threads == threads
    ap.bench(library, original, against=["onnxruntime"], dims={"rows": 7}, threads=3)
    assert timed[0].arguments["arguments"]["threads"] == timed[1].arguments["threads"] == 3


def test_the_network_of_another_library_is_told(
    library: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(tmp_path / "other.onnx")
    onnx.save(graph_model([node("Relu", "z", "y")], {"z": (1, 7, 3)}, ["y"]), other)
    assert main(["verify", library, "--model", other, "--dim", "rows=7"]) == 2
    said = capsys.readouterr().err
    assert f"takes 'x', which is no input of {other}: it was made from another network" in said


def test_one_size_is_timed_as_before(
    library: str, timed: list[Contender], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", library, "--threads", "1", "--dim", "rows=7"]) == 0
    [ours] = timed
    assert ours.factory.endswith(":Ours") and ours.arguments["shapes"] == {"x": (1, 7, 3)}
    assert "did not settle" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--dim", "rows=7,41"], "rows is 41"),
        (["--dim", "cols=7,41"], "rows is not given"),
        (["--dim", "rows=7", "--dim", "cols=1,2"], "cols=1 (dims= in Python) cannot change that"),
        (["--dim", "rows=7,9", "--profile"], "its calls cannot be timed one by one"),
        (["--dim", "rows=7..41"], "rows is 41"),
    ],
)
def test_sizes_that_cannot_be_are_refused(
    library: str, timed: list[Contender], given: list[str], message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert main(["bench", library, "--threads", "1", *given]) == 2
    assert message in capsys.readouterr().err and not timed


def test_a_network_is_opened_for_the_sizes_it_was_tuned_for(
    tmp_path: Path, timed: list[Contender]
) -> None:
    path = TINY["decoder"].file(0, tmp_path)
    assert main(["bench", str(path), "--threads", "1", "--dim", "past=0..23"]) == 0
    [ours] = timed
    assert ours.arguments["arguments"]["dims"] == {"past": "0..23"}
    assert [shapes["past_key_0"][2] for shapes in ours.arguments["sizes"]] == [0, 5, 23]
    assert all(shapes["ids"] == (1, 1) for shapes in ours.arguments["sizes"])


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    onnx.save(graph_model([node("Relu", "x", "y")], {"x": ("n", 3)}, ["y"]), path)
    return path


def test_arguments_of_python_are_sent_as_they_are_meant(
    network: Path, timed: list[Contender]
) -> None:
    db, target = network.with_name("t.db"), Target.host()
    Database(db).close()
    ap.bench(network, db=db, target=target, dims={"n": (1, 512)}, threads=1)
    sent = json.loads(json.dumps(timed[0].arguments))["arguments"]
    assert sent["db"] == str(db) and Target.parse(sent["target"]) == target
    assert sent["dims"] == {"n": "1..512"}
    ap.bench(network, shapes={"x": (*np.array([7, 3]),)}, threads=1)
    assert json.loads(json.dumps(timed[0].arguments))["arguments"]["shapes"] == {"x": [7, 3]}


@pytest.fixture
def tiled(tmp_path: Path) -> Path:
    """A network that repeats its input as often as another input says."""
    path, kinds = tmp_path / "net.onnx", {"s": onnx.TensorProto.INT64}
    nodes = [node("Tile", ["x", "s"], ["y"])]
    onnx.save(graph_model(nodes, {"x": ("n",), "s": (1,)}, ["y"], types=kinds), path)
    return path


def test_a_run_gets_data_within_the_bounds(tiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", str(tiled), "--threads", "1", "--bound", "s=2..9", "--dim", "n=3", "--json"]
    assert main(asked) == 0
    [y] = json.loads(capsys.readouterr().out)
    assert y["shape"][0] in range(6, 28, 3)


def test_engines_get_data_within_the_bounds(
    tiled: Path, timed: list[Contender], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["bench", str(tiled), "--threads", "1", "--against", "reference", "--bound", "s=2..9"]
    assert main([*asked, "--dim", "n=3"]) == 0
    alone = open_peer(**json.loads(json.dumps(timed[1].arguments)))
    assert main([*asked, "--dim", "n=2,3"]) == 0
    ours, theirs = (json.loads(json.dumps(contender.arguments)) for contender in timed)
    assert ours["arguments"]["bounds"] == {"s": "2..9"}
    several = open_peer_at(**theirs)
    several.choose(1)
    monkeypatch.setattr(peers, "compare", stop := Mock(side_effect=UsageError("enough")))
    assert main(["compile", *asked[1:], "--dim", "n=3"]) == 2
    beside = open_peer(**json.loads(json.dumps(stop.call_args[0][0][0].arguments)))
    for engine in (alone, several, beside):
        engine.run()
        assert 6 <= engine.outputs()["y"].size <= 27


def test_a_library_gets_data_within_its_bounds(
    tiled: Path, timed: list[Contender], capsys: pytest.CaptureFixture[str]
) -> None:
    library, sizes = str(tiled.with_name("net.so")), ["--threads", "1", "--dim", "n=3"]
    made = ["compile", str(tiled), "-o", library, "--effort", "none", "--threads", "1"]
    made += ["--db", str(tiled.with_name("t.db")), "--dim", "n=2..3", "--bound", "s=2..9"]
    assert main(made) == 0
    capsys.readouterr()
    assert main(["run", library, *sizes, "--json"]) == 0
    [y] = json.loads(capsys.readouterr().out)
    assert y["shape"][0] in range(6, 28, 3)
    compared = [library, "--model", str(tiled), "--against", "reference", *sizes]
    assert main(["verify", *compared]) == 0 and main(["bench", *compared]) == 0
    ours, theirs = (json.loads(json.dumps(contender.arguments)) for contender in timed)
    peer = open_peer(**theirs)
    peer.run()
    np.testing.assert_array_equal(Ours(**ours).outputs()["y"], peer.outputs()["y"])
    assert 6 <= peer.outputs()["y"].size <= 27


@pytest.mark.parametrize("sizes", [[], ["--dim", "n=2..9"], ["--shape", "x=2..9x3"]])
def test_other_engines_are_timed_at_one_size(
    network: Path, sizes: list[str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(peers, "compare", Mock(side_effect=UsageError("enough")))
    asked = ["compile", str(network), "--threads", "1", "--against", "reference", "-q"]
    assert main([*asked, *sizes]) == 2
    said = "2..9" if sizes else "1..32"
    assert f"cannot be timed at all sizes of n={said}" in capsys.readouterr().err
    assert main([*asked, "--dim", "n=2"]) == 2
    assert capsys.readouterr().err == "error: enough\n"


def test_bench_says_that_programs_are_predicted(
    network: Path, timed: list[Contender], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(network), "--threads", "1", "--dim", "n=7"]) == 0
    said = capsys.readouterr().err
    assert "warning: the programs of 1 of 1 tasks are predicted, not tuned" in said


def test_bench_lists_what_cannot_be_compiled(
    tmp_path: Path, timed: list[Contender], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.onnx"
    nodes = [node("Unheard", "x", "y", domain="test.ops")]
    onnx.save(graph_model(nodes, {"x": (7, 3)}, ["y"], domains=["test.ops"]), path)
    assert main(["bench", str(path), "--threads", "1"]) == 3
    assert "test.ops.Unheard" in capsys.readouterr().err and not timed
