"""The whole benchmark on tiny networks, with onnxruntime in the place of our libraries."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from ansorpy.arrays import Array
from benchmarks.dynamic import __main__ as command
from benchmarks.dynamic import measure
from benchmarks.dynamic.__main__ import main
from benchmarks.dynamic.steps import OrtSteps
from tests.benchmarks.dynamic import fakes

pytestmark = pytest.mark.usefixtures("short_turns")
pytest.importorskip("openvino")


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A small run, in which onnxruntime stands for our libraries."""
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    home = fakes.__name__
    for name, value in (
        ("any_size_library", fakes.any_size_library), ("one_size_library", fakes.one_size_library),
        ("ours_at", fakes.ours_at), ("OURS_AT", f"{home}:ours_at"), ("OURS_FIXED", f"{home}:ours"),
    ):  # fmt: skip
        monkeypatch.setattr(measure, name, value)
    return ["--tiny", "--threads", "1", "--folder", str(tmp_path), "--tuned-sizes", "1",
            "--peer-sizes", "2", "--passes", "1", "--json", str(tmp_path / "all.json")]  # fmt: skip


def test_networks_are_measured_at_sizes_and_kept(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    asked = [*arguments, "--only", "bert", "--parts", "tuned", "peers"]
    assert main(asked) == 0
    [bert] = json.loads((tmp_path / "all.json").read_text())["networks"]
    assert (bert["dim"], bert["low"], bert["high"], bert["threads"]) == ("seq", 1, 40, 1)
    assert set(bert["machine"]) == {"cpu", "cores"} and bert["versions"]["onnxruntime"]
    assert len(bert["errors"]) == 3 and max(bert["errors"].values()) == 0
    assert [list(row["engines"]) for row in bert["tuned"]] == [["ansorpy", "fixed"]]
    assert [library["trials"] for library in bert["fixed"]] == [5]
    peers = ["ansorpy", "onnxruntime", "openvino"]
    assert [list(row["engines"]) for row in bert["peers"]] == [peers] * 2
    figures = bert["figures"]
    assert figures["over_fixed_worst"] >= figures["over_fixed"] > 0 and figures["tuning"] == 3.0
    assert figures["ratio"] >= figures["ratio_least"] > 0 and figures["step_ratio"] is None
    assert "bert" in capsys.readouterr().out

    def never(*given: object, **options: object) -> None:
        raise AssertionError("what is kept is not measured again")

    monkeypatch.setattr(measure, "compare", never)
    monkeypatch.setattr(measure, "compare_sizes", never)
    assert main(asked) == 0
    assert json.loads((tmp_path / "all.json").read_text())["networks"] == [bert]


def timed(said: list[str]) -> list[str]:
    return [line for line in said if line.startswith("recogniser, w=")]


def test_a_stopped_run_goes_on_where_it_was(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [*arguments, "--only", "recogniser", "--parts", "peers", "--against"]
    said: list[str] = []

    def stops(line: str) -> None:
        said.append(line)
        if len(timed(said)) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "say", stops)
    with pytest.raises(KeyboardInterrupt):
        main(asked)
    monkeypatch.setattr(command, "say", said.append)
    assert main(asked) == 0
    assert len(timed(said)) == 2
    [found] = json.loads((tmp_path / "all.json").read_text())["networks"]
    assert len({row["size"] for row in found["peers"]}) == 2


def test_a_decoder_is_stepped_through_all_positions(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "OUR_STEPS", f"{fakes.__name__}:our_steps")
    monkeypatch.setattr(measure, "OurSteps", fakes.our_steps)
    assert main([*arguments, "--only", "decoder", "bert", "--parts", "positions"]) == 0
    decoder, bert = json.loads((tmp_path / "all.json").read_text())["networks"]
    passes = decoder["positions"]["passes"]
    assert list(passes) == ["ansorpy", "onnxruntime"] and bert["positions"] is None
    for [taken] in passes.values():
        assert len(taken) == 24 and min(taken) > 0
    assert decoder["figures"]["step_ratio"] > 0


def test_what_does_not_compile_is_said_and_the_peers_are_timed(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(measure, "any_size_library", fakes.refused)
    asked = [*arguments, "--only", "decoder", "--against", "onnxruntime"]
    assert main([*asked, "--peer-sizes", "1", "--parts", "tuned", "peers", "positions"]) == 1
    [found] = json.loads((tmp_path / "all.json").read_text())["networks"]
    assert found["failures"] == {"ansorpy": "decoder cannot be compiled"}
    assert [list(row["engines"]) for row in found["peers"]] == [["onnxruntime"]]
    assert list(found["positions"]["passes"]) == ["onnxruntime"] and found["tuned"] == []
    assert "decoder: ansorpy: decoder cannot be compiled" in capsys.readouterr().err


class Wrong(OrtSteps):
    """Its caches are twice what they should be."""

    def caches(self) -> dict[str, Array]:
        return {name: np.asarray(value, np.float32) * 2 for name, value in super().caches().items()}


def test_steps_that_differ_are_not_timed(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "OurSteps", Wrong)
    assert main([*arguments, "--only", "decoder", "--parts", "positions"]) == 1
    [found] = json.loads((tmp_path / "all.json").read_text())["networks"]
    assert found["failures"]["ansorpy"].startswith("4 of 4 outputs differ from onnxruntime: past_")
    assert list(found["positions"]["passes"]) == ["onnxruntime"]
