"""Random weights by role, deterministic, from initializers and from ConstantOfShape nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.backend
import pytest
from onnx import TensorProto, helper, numpy_helper

from ansorpy.evaluation.onnx_inputs import read_model
from ansorpy.evaluation.randomize import Role, random_weights, weight_roles
from tests.peer import peer

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def _zeros(name: str, *shape: int) -> TensorProto:
    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def _network() -> onnx.ModelProto:
    f32 = TensorProto.FLOAT
    nodes = [
        helper.make_node("ConstantOfShape", ["wshape"], ["w"]),
        helper.make_node("Conv", ["x", "w", "b"], ["c"], group=2),
        helper.make_node("BatchNormalization", ["c", "s", "b2", "m", "v"], ["n"]),
        helper.make_node("Unsqueeze", ["scale"], ["scale4"], axes=[1, 2]),
        helper.make_node("Mul", ["n", "scale4"], ["p"]),
        helper.make_node("Mul", ["p", "half"], ["h"]),
        helper.make_node("Flatten", ["h"], ["f"]),
        helper.make_node("Gemm", ["f", "g", "gb"], ["y"], transB=1),
    ]
    initial = [
        numpy_helper.from_array(np.array([64, 4, 3, 5], np.int64), "wshape"),
        *(_zeros(n, 64) for n in ("b", "s", "b2", "m", "v", "scale")),
        numpy_helper.from_array(np.array(0.5, np.float32), "half"),
        _zeros("g", 101, 64), _zeros("gb", 101),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", f32, [1, 8, 3, 5])],
        [helper.make_tensor_value_info("y", f32, [1, 101])],
        initial,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)


def _weights(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def test_roles_and_fan_in() -> None:
    roles = weight_roles(_network())
    assert roles == {
        "w": (Role.WEIGHT, 4 * 3 * 5), "b": (Role.BIAS, 1), "s": (Role.SCALE, 1),
        "b2": (Role.BIAS, 1), "m": (Role.BIAS, 1), "v": (Role.SCALE, 1), "scale": (Role.SCALE, 1),
        "g": (Role.WEIGHT, 64), "gb": (Role.BIAS, 1),
    }  # fmt: skip


def test_distributions() -> None:
    weights = _weights(random_weights(_network(), 3))
    assert weights["w"].shape == (64, 4, 3, 5) and weights["w"].dtype == np.float32
    assert weights["w"].std() == pytest.approx(np.sqrt(2 / 60), rel=0.05)
    assert weights["g"].std() == pytest.approx(np.sqrt(2 / 64), rel=0.05)
    assert weights["gb"].std() == pytest.approx(0.1, rel=0.25)
    for name in ("s", "v", "scale"):
        assert weights[name].min() >= 0.5 and weights[name].max() <= 1.5
        assert weights[name].std() == pytest.approx(1 / np.sqrt(12), rel=0.25)
    assert weights["half"] == np.float32(0.5)


def test_the_seed_decides() -> None:
    one, same, other = (_weights(random_weights(_network(), s)) for s in (1, 1, 2))
    assert all(np.array_equal(one[n], same[n]) for n in one)
    assert not np.array_equal(one["w"], other["w"])
    assert not np.array_equal(one["s"], one["v"])


def test_the_result_is_a_valid_model_that_computes() -> None:
    model = random_weights(_network(), 0)
    onnx.checker.check_model(model)
    session = peer(model)
    (y,) = session.run(None, {"x": np.ones((1, 8, 3, 5), np.float32)})
    assert np.isfinite(y).all() and y.std() > 0.01


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "densenet121"])
def test_light_models_lose_every_constant_weight(name: str) -> None:
    model = random_weights(read_model(LIGHT / f"light_{name}.onnx"), 0)
    assert "ConstantOfShape" not in {n.op_type for n in model.graph.node}
    assert len([i for i in model.graph.input]) == 1
    large = [a for a in _weights(model).values() if a.dtype == np.float32 and a.size > 50]
    assert len(large) > 10
    assert all(np.unique(a.flat[:5000]).size > 40 for a in large)
