"""Libraries that are compiled once, and what their first calls cost."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import ansorpy as ap
from ansorpy.errors import ForeignFile
from ansorpy.evaluation.bench.processes import Contender, EngineProcess
from benchmarks.dynamic import libraries, steps
from benchmarks.dynamic.libraries import LibrarySettings, one_size_library
from benchmarks.dynamic.suite import DynamicModel, shapes_at
from benchmarks.networks.measure import Tuned


def _relu(seed: int) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, "n", 3]) for n in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


RELU = DynamicModel("relu", "n", 1, 40, _relu)


def test_a_library_is_compiled_once_and_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    settings = LibrarySettings(tmp_path, 1, Tuned("none"))
    found = libraries.any_size_library(RELU, settings)
    assert found.size is None and found.bytes == Path(found.file).stat().st_size
    assert found.tuning_s > 0 and str(ap.load(found.file).get_inputs()[0].shape[1]) == "n"
    sizes = [shapes_at(settings.network(RELU), "n", n) for n in (7, 40, 1)]
    with EngineProcess(Contender("ansorpy", "", {}), steps.__name__) as process:
        request = {"library": found.file, "sizes": sizes, "threads": 1, "seed": 0, "repeats": 2}
        pairs = process.ask("first_calls", request, 60.0)["calls_ns"]
    assert len(pairs) == 2 and all(first > 0 and later > 0 for first, later in pairs)
    with monkeypatch.context() as other_code:
        other_code.setattr(libraries, "code_version", lambda: "1+abc")
        assert not settings.place(RELU).exists()
    monkeypatch.setattr(ap, "compile", None)
    assert libraries.any_size_library(RELU, settings) == found
    assert settings.place(RELU) != replace(settings, threads=2).place(RELU)
    (Path(found.file).parent / "library.json").write_text("{}")
    with pytest.raises(ForeignFile, match="describes no library"):
        libraries.any_size_library(RELU, settings)


def test_as_many_trials_as_the_other_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    class Made:
        def export(self, path: Path) -> None:
            path.write_bytes(b"code")

    def compile(model: Path, **given: object) -> Made:
        asked.append(given)
        return Made()

    monkeypatch.setattr(ap, "compile", compile)
    settings = LibrarySettings(tmp_path, 2, Tuned("quick", None, 90.0), seed=3)
    left = settings.place(RELU) / "any" / "tune.db"
    left.parent.mkdir(parents=True)
    left.write_text("of a run that was stopped")
    assert libraries.any_size_library(RELU, settings).bytes == 4
    assert one_size_library(RELU, 7, 55, settings).trials == 0
    dynamic, fixed = asked
    assert dynamic["dims"] == {"n": (1, 40)} and dynamic["time_limit"] == 90.0
    assert fixed["dims"] == {"n": 7} and fixed["trials"] == 55 and "time_limit" not in fixed
    assert dynamic["db"] != fixed["db"] and all(given["seed"] == 3 for given in asked)
