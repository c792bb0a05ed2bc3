"""Engines that are open to several sizes, timed at one after another."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.result import SizesComparison
from ansorpy.evaluation.bench.turns import Policy, Timing, compare_sizes
from ansorpy.evaluation.engines.protocol import bounds_of, open_peer_at
from ansorpy.evaluation.inputs import random_value
from ansorpy.quantities import LARGEST_SIZE
from benchmarks.dynamic.suite import TINY, shapes_at

QUICK = Policy(burst_s=0.005, untimed_s=0.0, rounds=(2, 3), load_timeout_s=30)
HERE = "tests.evaluation.engines"


def timing(milliseconds: float) -> Timing:
    found = Timing("1")
    found.add([milliseconds * 1e-3])
    return found


@pytest.fixture
def tiny_decoder(tmp_path: Path) -> Path:
    return TINY["decoder"].file(0, tmp_path)


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_bounded_inputs_have_the_shape_that_is_asked_for(shape: tuple[int, ...]) -> None:
    value = random_value(shape, np.dtype(np.int64), 5, "trip", ((2, 9),))
    assert value.shape == shape and 2 <= value.min() <= value.max() <= 9


def test_a_bound_may_be_the_largest_size() -> None:
    value = random_value((4,), np.dtype(np.int64), 5, "trip", ((1, LARGEST_SIZE),))
    assert value.min() >= 1


def test_bounded_factors_of_sizes_are_not_0() -> None:
    value = random_value((64,), np.dtype(np.float32), 5, "scales", ((0, 1),))
    np.testing.assert_array_equal(value, np.ones(64, np.float32))


def test_every_engine_is_timed_at_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    contenders = [
        Contender("rising", f"{HERE}:Sized", {"milliseconds": [0.1, 1.0, 20.0]}),
        Contender("steady", f"{HERE}:Sized", {"milliseconds": [0.5, 0.5, 0.5]}),
    ]
    said: list[str] = []
    first, last = compare_sizes(contenders, {0: "n=1", 2: "n=40"}, QUICK, said.append)
    assert list(first) == list(last) == ["rising", "steady"]
    assert 0.1 <= first["rising"].min_ms < 20.0 <= last["rising"].min_ms
    assert min(t["steady"].min_ms for t in (first, last)) >= 0.5
    loads = [line for line in said if line.startswith("loading")]
    assert loads == ["loading rising", "loading steady"]
    assert [line for line in said if line.startswith("n=")] == ["n=1", "n=40"]


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_one_engine_runs_many_sizes(name: str, tiny_decoder: Path) -> None:
    pytest.importorskip("onnx" if name == "reference" else name)
    pasts = (3, 0, 23, 1, 3)
    sizes = [shapes_at(tiny_decoder, "past", past) for past in pasts]
    engine = open_peer_at(name, str(tiny_decoder), threads=1, seed=5, sizes=sizes)
    found = []
    for number, past in enumerate(pasts):
        engine.choose(number)
        engine.run()
        engine.run()
        outputs = {key: np.array(value, np.float32) for key, value in engine.outputs().items()}
        assert outputs["present_key_1"].shape == (1, 3, past + 1, 8)
        key = random_value((1, 3, past, 8), np.dtype(np.float32), 5, "past_key_1")
        assert np.array_equal(outputs["present_key_1"][:, :, :past], key)
        found.append(outputs["logits"])
    np.testing.assert_allclose(found[0], found[-1], atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_bounds_contain_all_sizes() -> None:
    sizes = [{"x": (1, 7, 5), "y": ()}, {"x": (1, 0, 5), "y": ()}, {"x": (1, 9, 5), "y": ()}]
    assert bounds_of(sizes) == {"x": [(1, 1), (0, 9), (5, 5)], "y": []}


def test_table_plot_and_json() -> None:
    sizes = [{"batch": 1, "seq": 7}, {"batch": 1, "seq": 333}]
    timings = [
        {"ansorpy": timing(1.0), "onnxruntime": timing(2.0), "openvino": timing(1.0)},
        {"ansorpy": timing(10.0), "onnxruntime": timing(80.0), "openvino": timing(100.0)},
    ]
    comparison = SizesComparison("net", 2, sizes, timings)
    title, heading, *rows, means = comparison.table().text().splitlines()
    assert title == "net, 2 threads"
    assert heading.split() == [
        "batch", "seq", "ansorpy", "ms", "onnxruntime", "ms", "time", "openvino", "ms", "time",
    ]  # fmt: skip
    assert rows[1].split() == ["1", "333", "10.000", "80.000", "8.00x", "100.000", "10.00x"]
    assert means.split() == ["mean", "4.00x", "3.16x"]
    legend, small, large = comparison.plot(columns=41).splitlines()
    assert legend == ("batch,seq  * ansorpy, + onnxruntime, x openvino; 1 to 100 ms, logarithmic")
    assert small == "      1,7 |*     +" and large.index("*") - large.index("|") == 21
    assert large.endswith("+ x") and len(large) == len("batch,seq |") + 41
    data = comparison.to_dict()
    assert data["ratios"] == {"onnxruntime": pytest.approx(4.0), "openvino": pytest.approx(10**0.5)}
    assert [row["dims"] for row in data["sizes"]] == sizes
    assert data["sizes"][1]["engines"]["openvino"]["median_ms"] == pytest.approx(100.0)


def test_callers_and_precisions_are_said() -> None:
    timings = {"ansorpy": Timing("1", precision="float32", streams=2)}
    timings["ansorpy"].add([0.002])
    comparison = SizesComparison("net", 1, [{"n": 3}, {"n": 4}], [timings] * 2, streams=2)
    assert comparison.table().title == "net, 1 thread, 2 callers at once"
    assert comparison.to_dict()["streams"] == 2
    assert comparison.parts()[2:] == ["computed in float32 types: ansorpy"]


def test_one_engine_alone_has_no_ratios() -> None:
    comparison = SizesComparison("net", 1, [{"n": 3}], [{"ansorpy": timing(2.0)}])
    assert comparison.table().text().splitlines()[2:] == ["3       2.000"]
    assert comparison.plot().splitlines()[1] == "3 |*" and comparison.ratios() == {}
