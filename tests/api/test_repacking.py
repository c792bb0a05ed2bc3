"""Models of one network with other constants, without compiling it again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import ModelProto

from ansorpy.api.networks import NetworkSpec
from ansorpy.api.repacking import compile_programs
from tests.frontend.models import graph_model, node
from tests.peer import peer

Arrays = dict[str, np.ndarray]
SHAPES = {
    "w": (6, 3, 3, 3), "scale": (6,), "shift": (6,), "mean": (6,), "spread": (6,),
    "q": (24, 24), "k": (24, 24), "v": (24, 24),
}  # fmt: skip


def attending() -> ModelProto:
    """A convolution with a norm, which is folded, and attention, whose products are joined."""
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", "scale", "shift", "mean", "spread"], ["n"]),
        node("Reshape", ["n", "flat"], ["r"]),
        *(node("MatMul", ["r", name], [f"{name}s"]) for name in "qkv"),
        node("Transpose", ["ks"], ["kt"], perm=[0, 2, 1]),
        node("MatMul", ["qs", "kt"], ["scores"]),
        node("Softmax", ["scores"], ["weights"], axis=-1),
        node("MatMul", ["weights", "vs"], ["y"]),
    ]
    constants = {"flat": np.array([1, 6, 24])}
    return graph_model(nodes, {"x": (1, 3, 4, 6), **SHAPES}, ["y"], constants)


def values(rng: np.random.Generator, shapes: dict[str, tuple[int, ...]]) -> Arrays:
    return {name: rng.random(shape, np.float32) / 4 for name, shape in shapes.items()}


def expected(model: ModelProto, feeds: Arrays) -> np.ndarray:
    session = peer(model)
    return np.asarray(session.run(None, feeds)[0])


def test_constants_are_packed_for_the_same_programs(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    model, constants = attending(), values(rng, SHAPES)
    spec = NetworkSpec(model, constants=constants)
    compiled, programs = compile_programs(spec, effort="none", db=tmp_path / "t.db", threads=1)
    x = rng.random((1, 3, 4, 6), np.float32)
    for _ in range(2):
        wanted = expected(model, {"x": x, **constants})
        np.testing.assert_allclose(compiled(x), wanted, rtol=1e-3, atol=1e-5)
        constants = values(rng, SHAPES)
        other = programs.with_constants(constants)
        assert other is not None
        assert {c.digest for c in other.plan.objects} == {c.digest for c in compiled.plan.objects}
        compiled = other


def test_values_that_decide_about_the_code(tmp_path: Path, rng: np.random.Generator) -> None:
    nodes = [node("MatMul", ["x", "w"], ["p"]), node("Relu", ["p"], ["r"]),
             node("Mul", ["r", "factor"], ["y"])]  # fmt: skip
    shapes = {"w": (5, 7), "factor": (1,)}
    model = graph_model(nodes, {"x": (3, 5), **shapes}, ["y"])
    spec = NetworkSpec(model, constants=values(rng, shapes))
    _, programs = compile_programs(spec, effort="none", db=tmp_path / "t.db", threads=1)
    assert spec.constants is not None
    weight, factor = values(rng, {"w": (5, 7)})["w"], spec.constants["factor"]
    assert programs.with_constants({"w": weight, "factor": factor}) is not None
    assert programs.with_constants({"w": weight, "factor": np.array([0.5], np.float32)}) is None
