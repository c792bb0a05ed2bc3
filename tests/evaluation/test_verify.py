"""Verification fails on errors, NaN, shapes, and on errors a softmax would hide."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import ansorpy as ap
from ansorpy.errors import UsageError, VerificationFailed
from ansorpy.evaluation.onnx_edit import FinalSoftmax, softmax_inputs_as_outputs
from ansorpy.evaluation.verify import check_output, compare_outputs
from tests.frontend.models import graph_model, node
from tests.graph.nets import Net

SOFTMAX = {"p": FinalSoftmax("z", 1, True)}


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z.astype(np.float64) - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True), np.float32)


def test_error_is_relative_to_the_largest_value(rng: np.random.Generator) -> None:
    want = rng.standard_normal((3, 7)).astype(np.float32)
    want[0, 0] = 100.0
    got = want.copy()
    got[2, 6] += 1e-3
    check = check_output("y", got, want, 2e-5)
    assert check.ok and check.error == pytest.approx(1e-5, rel=0.01)
    got[2, 6] += 2e-3
    assert not check_output("y", got, want, 2e-5).ok


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["ours", "theirs", "both"])
def test_nan_and_infinity_fail(bad: float, where: str) -> None:
    ours, theirs = np.ones(5, np.float32), np.ones(5, np.float32)
    if where in ("ours", "both"):
        ours[3] = bad
    if where in ("theirs", "both"):
        theirs[3] = bad
    check = check_output("y", ours, theirs, 1.0)
    assert not check.ok and "NaN or infinite" in check.problem


def test_shape_type_and_integers() -> None:
    ones = np.ones((2, 3), np.float32)
    assert "shape" in check_output("y", ones, ones.T, 1.0).problem
    assert "type" in check_output("y", ones, ones.astype(np.float64), 1.0).problem
    ints = np.arange(4)
    assert check_output("i", ints, ints.copy(), 0.0).ok
    assert check_output("i", ints, ints[::-1].copy(), 1.0).problem == "4 of 4 elements differ"


def test_an_all_zero_reference_is_compared_absolutely() -> None:
    zero = np.zeros(4, np.float32)
    assert check_output("y", zero, zero, 1e-6).ok
    assert not check_output("y", zero + np.float32(1e-3), zero, 1e-6).ok


def test_probabilities_alone_still_show_the_error_of_small_logits(rng: np.random.Generator) -> None:
    z = (rng.standard_normal((2, 100)) * 4).astype(np.float32)
    theirs = {"p": softmax(z), "z": z}
    assert compare_outputs("m", "ref", {"p": softmax(z)}, theirs, SOFTMAX).ok
    wrong = z.copy()
    wrong[1, z[1].argmin()] += 0.05  # its probability is tiny: p alone would not show it
    ours = {"p": softmax(wrong)}
    by_name = {c.name: c for c in compare_outputs("m", "ref", ours, theirs, SOFTMAX).checks}
    assert by_name["p"].ok and not by_name["log(p)"].ok


def test_probabilities_that_underflow_do_not_hide_the_others(rng: np.random.Generator) -> None:
    z = (rng.standard_normal((3, 50)) * 40).astype(np.float32)
    theirs = {"p": softmax(z), "z": z}
    assert (softmax(z) == 0).any()
    assert compare_outputs("m", "ref", {"p": softmax(z)}, theirs, SOFTMAX).ok
    wrong = softmax(z)
    wrong[2, z[2].argsort()[-2]] = 0.0
    result = compare_outputs("m", "ref", {"p": wrong}, theirs, SOFTMAX)
    assert not {c.name: c for c in result.checks}["log(p)"].ok


def test_a_saturated_softmax_alone_fails(rng: np.random.Generator) -> None:
    z = (rng.standard_normal((1, 50)) * 1e4).astype(np.float32)
    p = softmax(z)
    result = compare_outputs("m", "ref", {"p": p}, {"p": p, "z": z}, SOFTMAX)
    assert not result.ok
    with pytest.raises(VerificationFailed, match="saturated"):
        result.demand()
    assert compare_outputs("m", "ref", {"p": p, "z": z}, {"p": p, "z": z}, SOFTMAX).ok


def test_a_mask_in_a_softmax_hides_no_error(rng: np.random.Generator) -> None:
    """The first row of a causal mask leaves one probability, which is 1 whatever its logit."""
    z = (rng.standard_normal((6, 6)) * 4).astype(np.float32)
    z[np.triu_indices(6, 1)] = -np.inf
    theirs = {"p": softmax(z), "z": z}
    for ours in ({"p": softmax(z)}, theirs):
        found = compare_outputs("m", "ref", ours, theirs, SOFTMAX)
        assert found.ok, found.table().text()
        assert "Infinity" not in json.dumps(found.to_dict())
        other = {**ours, "p": softmax(z)[::-1].copy()}
        wrong = compare_outputs("m", "ref", other, theirs, SOFTMAX)
        assert not {c.name: c for c in wrong.checks}["p"].ok
    for value in (0.0, np.inf, np.nan):
        unmasked = z.copy()
        unmasked[0, 5] = value
        [_, check] = compare_outputs("m", "ref", {**theirs, "z": unmasked}, theirs, SOFTMAX).checks
        assert not check.ok


@pytest.mark.parametrize("whole_row", [False, True])
@pytest.mark.parametrize("masking", [0.0, -1e4, -1e9, float(np.finfo(np.float32).min), -np.inf])
def test_a_mask_excuses_no_error(masking: float, whole_row: bool, rng: np.random.Generator) -> None:
    """Finite masks may mask whole rows, as those of padding do; minus infinity would give NaN."""
    z = (rng.standard_normal((8, 6)) * 4).astype(np.float32)
    near = z + rng.uniform(-2e-6, 2e-6, z.shape).astype(np.float32)
    masked = np.triu(np.ones(z.shape, np.bool_), 1)
    if whole_row and masking > -np.inf:
        masked[1:6] = True  # more than half of the rows
    for logits in (z, near):
        logits[masked] += np.float32(masking)
    theirs, right = {"p": softmax(z), "z": z}, {"p": softmax(near), "z": near}
    for ours in (right, {"p": right["p"]}):
        found = compare_outputs("m", "ref", ours, theirs, SOFTMAX)
        assert found.ok, found.table().text()
    shown, hidden = np.copy(right["p"]), near.copy()
    shown[7, 2] += 1e-2
    hidden[7, z[7].argmin()] += 1e-2  # the probabilities show little of that
    for wrong in ({"p": shown}, {"z": hidden}):
        found = compare_outputs("m", "ref", right | wrong, theirs, SOFTMAX)
        assert [c.name for c in found.checks if not c.ok] == [*wrong]
    found = compare_outputs("m", "ref", {"p": shown}, theirs, SOFTMAX)
    assert [c.name for c in found.checks if not c.ok] == ["p", "log(p)"]
    found = compare_outputs("m", "ref", {"p": softmax(hidden)}, theirs, SOFTMAX)
    assert "log(p)" in [c.name for c in found.checks if not c.ok]


def test_a_tolerance_of_zero_allows_no_error(rng: np.random.Generator) -> None:
    z = rng.standard_normal((2, 100)).astype(np.float32)
    theirs = {"p": softmax(z), "z": z}
    assert compare_outputs("m", "ref", theirs, theirs, SOFTMAX, 0.0).ok
    wrong = softmax(z)
    wrong[1, 0] *= np.float32(1 + 1e-6)
    ours = {"p": wrong, "z": z}
    assert not compare_outputs("m", "ref", ours, theirs, SOFTMAX, 0.0).ok


def test_what_a_saturated_row_ignores_is_compared_with_its_largest_value() -> None:
    """Each row has one likely logit, a small one, whose rounding is that of the large one."""
    z = np.array([[-500.0, -0.3], [-0.4, -450.0]], np.float32)
    near = z + np.float32(1e-5)
    theirs = {"p": softmax(z), "z": z}
    assert compare_outputs("m", "ref", {"p": softmax(near), "z": near}, theirs, SOFTMAX).ok
    for name, change in (("p", 1e-2), ("z", 0.1)):
        wrong = theirs[name] + np.float32(change)
        found = compare_outputs("m", "ref", theirs | {name: wrong}, theirs, SOFTMAX)
        assert [c.name for c in found.checks if not c.ok] == [name]


def test_softmax_inputs_become_outputs_once() -> None:
    f32 = TensorProto.FLOAT
    nodes = [
        helper.make_node("Relu", ["x"], ["z"]),
        helper.make_node("Softmax", ["z"], ["s"]),
        helper.make_node("Flatten", ["s"], ["p"]),
        helper.make_node("Neg", ["z"], ["n"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", f32, [2, 3])], [info("p", f32, [2, 3]), info("n", f32, [2, 3])]
    )
    for opset, expected in ((9, FinalSoftmax("z", 1, True)), (17, FinalSoftmax("z", -1, False))):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        extended, found = softmax_inputs_as_outputs(model)
        assert found == {"p": expected}
        assert [o.name for o in extended.graph.output] == ["p", "n", "z"]
        assert [o.name for o in model.graph.output] == ["p", "n"]
        assert softmax_inputs_as_outputs(extended)[0] is extended


@pytest.mark.parametrize("is_stated", [True, False])
def test_nothing_need_be_known_of_the_softmax_but_its_type(is_stated: bool) -> None:
    """onnx infers no shapes beyond an operator that it does not know."""
    nodes = [
        node("Odd", ["x"], ["z"], domain="com.example"),
        node("Softmax", ["z"], ["s"]),
        node("Flatten", ["s"], ["p"]),
    ]
    model = graph_model(nodes, {"x": (2, 3)}, ["p"], domains=["com.example"])
    stated = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 1, 3])
    model.graph.value_info.extend([stated] if is_stated else [])
    extended, _ = softmax_inputs_as_outputs(model)
    z = extended.graph.output[-1]
    assert z.name == "z" and z.type.tensor_type.elem_type == TensorProto.FLOAT
    assert z.type.tensor_type.HasField("shape") == is_stated


def test_a_network_with_a_causal_mask_is_verified(tmp_path: Path) -> None:
    net = Net(x=(5, 5))
    mask = np.triu(np.full((5, 5), -np.inf, np.float32), 1)
    probabilities = net.op("Softmax", net.op("Add", "x", net.constant(mask)))
    onnx.save(net.model(net.reshape(probabilities, 25)), tmp_path / "m.onnx")
    found = ap.verify(tmp_path / "m.onnx", threads=1)
    assert found.ok and len(found.checks) == 2, found.table().text()


def test_rows_follow_the_axis() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    assert FinalSoftmax("z", 1, True).rows(a).shape == (2, 12)
    assert np.array_equal(FinalSoftmax("z", 1, False).rows(a)[0], a[0, :, 0])


def test_outputs_of_another_network_are_refused() -> None:
    one = {"y": np.zeros(3, np.float32)}
    with pytest.raises(UsageError, match="ort gives y, but net.so has the output z"):
        compare_outputs("net.so", "ort", {"z": one["y"]}, one, {})
