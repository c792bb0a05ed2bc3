"""Verification fails on errors, NaN, shapes, and on errors a softmax would hide."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from ansorpy.errors import UsageError, VerificationFailed
from ansorpy.evaluation.onnx_edit import FinalSoftmax, softmax_inputs_as_outputs
from ansorpy.evaluation.verify import check_output, compare_outputs

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


def test_rows_follow_the_axis() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    assert FinalSoftmax("z", 1, True).rows(a).shape == (2, 12)
    assert np.array_equal(FinalSoftmax("z", 1, False).rows(a)[0], a[0, :, 0])


def test_outputs_of_another_network_are_refused() -> None:
    one = {"y": np.zeros(3, np.float32)}
    with pytest.raises(UsageError, match="ort gives y, but net.so has the output z"):
        compare_outputs("net.so", "ort", {"z": one["y"]}, one, {})
