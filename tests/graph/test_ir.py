"""Graphs as they are built: names."""

from __future__ import annotations

from ansorpy.graph.ir import GraphBuilder
from ansorpy.graph.ops import Elementwise, Fn, TensorType
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
