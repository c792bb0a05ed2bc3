"""Graphs as they are built: names, constants that are shared, and parts."""

from __future__ import annotations

import numpy as np

from ansorpy.graph.ir import GraphBuilder
from ansorpy.graph.ops import Elementwise, Expand, Fn, Reshape, Softmax, TensorType, Transpose
from ansorpy.ir.dtypes import DType


class Counted(dict[str, TensorType]):
    """Counts how often it is asked for a name."""

    asked = 0

    def __contains__(self, name: object) -> bool:
        self.asked += 1
        return super().__contains__(name)


def test_a_name_taken_gets_the_next_free_number() -> None:
    builder = GraphBuilder()
    builder.add_input("x", TensorType((3,), DType.FLOAT32))
    names = [builder.emit(Elementwise(Fn.EXP), ["x"], name) for name in "yyxyy"]
    assert names == ["y", "y.1", "x.1", "y.2", "y.3"]
    again = [builder.emit(Elementwise(Fn.EXP), ["x"], name) for name in ("y.5", "y", "y", "y.1")]
    assert again == ["y.5", "y.4", "y.6", "y.1.1"]


def test_the_next_free_number_is_found_without_trying_all() -> None:
    builder = GraphBuilder()
    builder.add_input("x", TensorType((3,), DType.FLOAT32))
    builder.types = types = Counted(builder.types)
    for _ in range(500):
        builder.emit(Elementwise(Fn.EXP), ["x"], "y")
    assert types.asked < 4 * 500


def test_what_is_made_of_the_same_constants_is_the_same_constant() -> None:
    builder, rng = GraphBuilder(), np.random.default_rng(5)
    weight = builder.add_constant("w", rng.standard_normal((3, 4)))
    first, again = (builder.emit(Transpose((1, 0)), [weight], "t") for _ in range(2))
    assert first == again
    assert builder.constants[first].flags.c_contiguous
    assert builder.emit(Reshape((4, 3)), [weight], "t") != first


def test_a_constant_that_repeats_elements_takes_no_more_memory() -> None:
    builder, rng = GraphBuilder(), np.random.default_rng(5)
    row = builder.add_constant("r", rng.standard_normal((1, 4)))
    array = builder.constants[builder.emit(Expand((1000, 4)), [row], "e")]
    assert array.shape == (1000, 4) and array.strides[0] == 0


def test_constants_are_shared_if_all_their_bits_are_equal() -> None:
    builder, rng = GraphBuilder(), np.random.default_rng(6)
    array = rng.standard_normal((3, 4), np.float32)
    name = builder.share_constant("a", array)
    turned = np.asarray(array, order="F")
    zeros = array * 0
    others = [array.reshape(4, 3), array.view(np.int32), array * np.float32(2), zeros, -zeros]
    assert builder.share_constant("b", turned) == name
    assert len({name, *(builder.share_constant("c", other) for other in others)}) == 6


def test_a_part_has_only_what_its_values_need() -> None:
    builder, rng = GraphBuilder(), np.random.default_rng(7)
    x, _ = (builder.add_input(name, TensorType((3,), DType.FLOAT32)) for name in "xz")
    weight = builder.add_constant("w", rng.standard_normal(3, np.float32))
    soft = builder.emit(Softmax((0,)), [weight], "soft")
    both = builder.emit(Elementwise(Fn.ADD), [x, soft], "both")
    twice = builder.emit(Elementwise(Fn.ADD), [both, both], "twice")
    known = builder.part([soft])
    assert (known.inputs, [node.output for node in known.nodes]) == ((), [soft])
    whole = builder.part([twice, soft])
    assert whole.inputs == ("x",)
    assert [output.value for output in whole.outputs] == [twice, soft]
    assert [node.output for node in whole.nodes] == [soft, both, twice]
