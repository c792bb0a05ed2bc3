"""Merge, cancel and recognise reshapes and transposes.

reshape(reshape(x))                    -->   reshape(x)
transpose(transpose(x))                -->   transpose(x), or x
transpose that moves only unit axes    -->   reshape
reshape(transpose(reshape(x)))         -->   shuffle(x), when one axis is split, permuted, merged
reshape(transpose(reshape(x)))         -->   transpose(x), when unit axes come and go
reshape(expand(reshape(x)))            -->   repeat(x), when each element of an axis is repeated
"""

from __future__ import annotations

import math
from dataclasses import replace

from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Expand, Op, Repeat, Reshape, Shape, Shuffle, Transpose
from ansorpy.graph.ops.base import identity_order, pick
from ansorpy.ir.extents import AnyExtent

__all__ = ["simplify_moves"]


def simplify_moves(graph: Graph) -> Graph:
    """*graph* with fewer movements; values and their order are unchanged."""
    builder = GraphBuilder.like(graph)
    producers: dict[str, Node] = {}
    same: dict[str, str] = {}
    for node in graph.nodes:
        inputs = tuple(same.get(i, i) for i in node.inputs)
        op: Op | None = node.op
        if isinstance(op, Transpose):
            op, inputs = _joined_transpose(op, inputs[0], builder, producers)
        if isinstance(op, Reshape):
            op, inputs = _joined_reshape(op, inputs[0], builder, producers)
        if op is None:
            same[node.output] = inputs[0]
            continue
        producers[node.output] = Node(op, inputs, node.output)
        builder.add_node(producers[node.output])
    return builder.finish(replace(o, value=same.get(o.value, o.value)) for o in graph.outputs)


def _joined_transpose(
    op: Transpose, x: str, builder: GraphBuilder, producers: dict[str, Node]
) -> tuple[Op | None, tuple[str, ...]]:
    """(movement, operand) that replaces *op* and the producer of *x*; None if nothing moves."""
    perm = op.perm
    before = producers.get(x)
    if before is not None and isinstance(before.op, Transpose):
        perm = pick(before.op.perm, perm)
        x = before.inputs[0]
    if perm == identity_order(len(perm)):
        return None, (x,)
    shape = builder.types[x].shape
    moved = [p for p in perm if shape[p] != 1]
    if moved == sorted(moved):
        return Reshape(pick(shape, perm)), (x,)
    return Transpose(perm), (x,)


def _joined_reshape(
    op: Reshape, x: str, builder: GraphBuilder, producers: dict[str, Node]
) -> tuple[Op | None, tuple[str, ...]]:
    before = producers.get(x)
    if before is not None and isinstance(before.op, Reshape):
        x = before.inputs[0]
        before = producers.get(x)
    if builder.types[x].shape == op.shape:
        return None, (x,)
    if before is not None and isinstance(before.op, Transpose):
        first = producers.get(before.inputs[0])
        if first is not None and isinstance(first.op, Reshape):
            source = first.inputs[0]
            shapes = builder.types[source].shape, first.op.shape
            found = _shuffle(*shapes, before.op.perm, op.shape) or _turned(
                *shapes, before.op.perm, op.shape
            )
            if found is not None:
                return found, (source,)
    if before is not None and isinstance(before.op, Expand):
        return _after_expand(op, x, before, builder, producers)
    return op, (x,)


def _turned(start: Shape, split: Shape, perm: Shape, end: Shape) -> Transpose | None:
    """Reshape, transpose and reshape as one transpose, if the reshapes only move unit axes."""
    wide, inside = ([d for d, e in enumerate(shape) if e != 1] for shape in (start, split))
    order = (
        [wide[inside.index(p)] for p in perm if split[p] != 1] if len(wide) == len(inside) else []
    )
    if [start[d] for d in wide] != [split[d] for d in inside] or len(start) != len(end):
        return None
    if [start[d] for d in order] != [e for e in end if e != 1]:
        return None
    units, places = iter(d for d, e in enumerate(start) if e == 1), iter(order)
    return Transpose(tuple(next(places if e != 1 else units) for e in end))


def _after_expand(
    op: Reshape, x: str, expand: Node, builder: GraphBuilder, producers: dict[str, Node]
) -> tuple[Op, tuple[str, ...]]:
    """*op* on the result of *expand*, as a repetition (reshaped if necessary) where possible."""
    (source,) = expand.inputs
    first = producers.get(source)
    if first is not None and isinstance(first.op, Reshape):
        source = first.inputs[0]
    start = builder.types[source].shape
    repeat = _repeat(start, builder.types[expand.inputs[0]].shape, builder.types[x].shape)
    if repeat is None:
        return op, (x,)
    if tuple(e * k for e, k in zip(start, repeat.times, strict=True)) == op.shape:
        return repeat, (source,)
    name = builder.emit(repeat, (source,), f"{x}.repeated")
    producers[name] = Node(repeat, (source,), name)
    return op, (name,)


def _repeat(start: Shape, split: Shape, expanded: Shape) -> Repeat | None:
    """Reshape to *split*, expand and merge of the new axes as one repetition, if possible.

    In *split*, each axis of *start* is followed by at most one axis of extent one.
    """
    if len(split) != len(expanded):
        return None
    times: list[AnyExtent] = []
    rest = list(zip(split, expanded, strict=True))
    for extent in start:
        if not rest or rest[0] != (extent, extent):
            return None
        rest.pop(0)
        times.append(rest.pop(0)[1] if rest and rest[0][0] == 1 != rest[0][1] else 1)
    return Repeat(tuple(times)) if not rest and any(k != 1 for k in times) else None


def _shuffle(start: Shape, split: Shape, perm: Shape, end: Shape) -> Shuffle | None:
    """Reshape to *split*, transpose by *perm* and reshape to *end* as one shuffle, if possible."""
    count = len(split) - len(start) + 1
    if start != end or count < 2:
        return None
    for axis in range(len(start)):
        factors = split[axis : axis + count]
        same = split[:axis] == start[:axis] and split[axis + count :] == start[axis + 1 :]
        inside = set(range(axis, axis + count))
        fixed = all(p == d for d, p in enumerate(perm) if d not in inside)
        if same and fixed and math.prod(factors) == start[axis]:
            return Shuffle(axis, factors, tuple(p - axis for p in perm[axis : axis + count]))
    return None
