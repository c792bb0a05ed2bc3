"""Sizes that ``bench`` is asked for: lists, combinations, and the shapes that follow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

import ansorpy as ap
from ansorpy.cli.main import main
from ansorpy.cli.sizes import listed_sizes, points_of, port_shapes
from ansorpy.errors import UsageError
from ansorpy.report.bench import turns
from ansorpy.report.bench.processes import Contender
from ansorpy.report.bench.turns import Timing
from ansorpy.runtime.library import shared_library
from ansorpy.runtime.ports import Port
from tests.frontend.models import operator_model

F32 = np.dtype(np.float32)


def test_lists_of_sizes_are_combined() -> None:
    dims = listed_sizes(["batch=1,3", "seq len=0,7"])
    assert dims == {"batch": (1, 3), "seq len": (0, 7)}
    assert [tuple(point.values()) for point in points_of(dims)] == [(1, 0), (1, 7), (3, 0), (3, 7)]
    assert points_of({}) == [{}]


@pytest.mark.parametrize("item", ["seq", "=3", "seq=", "seq=1,", "seq=-1", "seq=1..7"])
def test_what_is_no_list_of_sizes_is_refused(item: str) -> None:
    with pytest.raises(UsageError, match=f"{item!r} is not a dimension's sizes"):
        listed_sizes([item])
    with pytest.raises(UsageError, match="'seq=7,1,7' lists a size twice"):
        listed_sizes(["seq=7,1,7"])


def test_ports_at_sizes() -> None:
    n = ap.dim("n", 0, 40, step=5)
    ports = [Port("x", (1, n, n // 2 + 3), F32), Port("y", (7,), F32)]
    assert port_shapes(ports, {"n": 35, "m": 2}) == {"x": (1, 35, 20), "y": (7,)}
    assert port_shapes(ports[1:], {}) == {"y": (7,)}
    for sizes, given in (({}, "not given"), ({"n": 45}, "45"), ({"n": 7}, "7")):
        with pytest.raises(UsageError, match=f"input 'x' takes 1xnx.* but n is {given}") as caught:
            port_shapes(ports, sizes)
        assert caught.value.hint == "give a size in n=0..40:step=5 with --dim n=N"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What looks like a library whose input has 5 to 40 rows."""
    path = tmp_path / "net.so"
    path.write_bytes(b"\x7fELF")
    ports = (Port("x", (1, ap.dim("rows", 5, 40), 3), F32),)
    described = SimpleNamespace(input_ports=ports, threads=1, median_ms=None)
    monkeypatch.setattr(shared_library, "read_library", lambda path: (described, None))
    return str(path)


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

    monkeypatch.setattr(turns, "compare_sizes", at_sizes)
    monkeypatch.setattr(turns, "compare", at_one)
    return asked


def test_a_list_of_sizes_is_timed_size_by_size(
    library: str, timed: list[Contender], capsys: pytest.CaptureFixture[str]
) -> None:
    original = str(Path(library).with_suffix(".onnx"))
    onnx.save(operator_model("Relu", [(1, 7, 3)]), original)
    asked = ["bench", library, "--model", original, "--threads", "1", "--dim", "rows=5,7,40"]
    assert main([*asked, "--against", "openvino"]) == 0
    ours, theirs = timed
    assert ours.factory.endswith(":ours_at") and theirs.factory.endswith(":open_peer_at")
    shapes = [{"x": (1, rows, 3)} for rows in (5, 7, 40)]
    assert ours.arguments["sizes"] == theirs.arguments["sizes"] == shapes
    assert "dims" not in ours.arguments["arguments"]
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[2:5]] == ["5", "7", "40"]
    assert printed[5].split() == ["mean", "1.00x"] and "* ansorpy, + openvino" in printed[6]
    assert main([*asked, "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["dims"]["rows"] for row in data["sizes"]] == [5, 7, 40]
    assert list(data["sizes"][0]["engines"]) == ["ansorpy"]


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
        (["--dim", "rows=7", "--dim", "cols=1,2"], "--dim cols=1 cannot change that"),
        (["--dim", "rows=7,9", "--profile"], "several sizes cannot be profiled"),
        (["--dim", "rows=7..9"], "'rows=7..9' is not a dimension's sizes"),
    ],
)
def test_sizes_that_cannot_be_are_refused(
    library: str, timed: list[Contender], given: list[str], message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert main(["bench", library, "--threads", "1", *given]) == 2
    assert message in capsys.readouterr().err and not timed


def test_only_a_library_runs_several_sizes(
    tmp_path: Path, timed: list[Contender], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(tmp_path / "net.onnx"), "--dim", "batch=1,2"]) == 2
    assert "net.onnx is no library" in capsys.readouterr().err and not timed
