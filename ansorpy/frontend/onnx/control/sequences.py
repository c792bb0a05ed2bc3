"""Sequences and optional values, whose tensors are known by number when a model is imported."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext
from ansorpy.frontend.onnx.control.scopes import Translator, body_of
from ansorpy.frontend.onnx.control.values import Listed, Maybe, Rows, Value
from ansorpy.frontend.onnx.unsupported import Unequal, Unsupported
from ansorpy.graph.ops import Gather
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS", "identity"]


def _listed(translator: Translator, ctx: NodeContext, number: int = 0) -> Listed:
    """The operand *number*, which is a sequence."""
    value = translator.value(ctx.node.input[number])
    if isinstance(value, Maybe):
        value = value.value if value.value is not None else Listed(())
    if isinstance(value, Rows):
        length = ctx.type_of(value.value).shape[0]
        raise ctx.undecided(f"a sequence of {length} tensors", [length])
    if not isinstance(value, Listed):
        raise Unsupported(f"input {number}", "it must be a sequence")
    return value


def _place(ctx: NodeContext, number: int, count: int, default: int) -> int:
    """The position that operand *number* states in a sequence of *count* places."""
    if not ctx.has_input(number):
        return default
    (place,) = ctx.constant_ints(number, "position")
    if not -count <= place < count:
        raise Unsupported(f"position {place}", f"it must be from {-count} to {count - 1}")
    return place % count


def empty(translator: Translator, ctx: NodeContext) -> list[Value]:
    """A sequence of no tensors."""
    return [Listed(())]


def construct(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The operands as a sequence."""
    return [Listed(tuple(ctx.input(n) for n in range(len(ctx.node.input))))]


def element(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The tensor at a position; if that is computed, all must have the same type."""
    held = translator.value(ctx.node.input[0])
    if isinstance(held, Rows):
        return [ctx.emit(Gather(0), [held.value, ctx.reshape(ctx.input(1), ())])]
    items = _listed(translator, ctx).items
    types = {ctx.type_of(item) for item in items}
    if ctx.input(1) not in ctx.builder.constants and len(types) == 1:
        (kind,) = types
        rows = [ctx.reshape(item, (1, *kind.shape)) for item in items]
        place = ctx.reshape(ctx.input(1), ())
        return [ctx.emit(Gather(0), [ctx.concat(rows, 0), place])]
    return [items[_place(ctx, 1, len(items), 0)]]


def insert(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The sequence with one more tensor, at a position or at the end."""
    items = _listed(translator, ctx).items
    place = len(items)
    if ctx.has_input(2):
        (given,) = ctx.constant_ints(2, "position")
        if not -place <= given <= place:
            raise Unsupported(f"position {given}", f"it must be from {-place} to {place}")
        place = given + place if given < 0 else given
    return [Listed((*items[:place], ctx.input(1), *items[place:]))]


def erase(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The sequence without the tensor at a position, or without the last one."""
    items = _listed(translator, ctx).items
    place = _place(ctx, 1, len(items), len(items) - 1)
    return [Listed((*items[:place], *items[place + 1 :]))]


def length(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The number of tensors in a sequence."""
    held = translator.value(ctx.node.input[0])
    if isinstance(held, Rows):
        rows = ctx.type_of(held.value).shape[0]
        return [ctx.from_sizes(np.asarray(rows, object))]
    items = _listed(translator, ctx).items
    return [ctx.builder.add_constant(ctx.node.output[0], np.asarray(len(items), np.int64))]


def split(translator: Translator, ctx: NodeContext) -> list[Value]:
    """Parts of a tensor along an axis: of one element, of equal length, or of given lengths."""
    value, shape = ctx.input(), ctx.shape()
    axis = ctx.axis(ctx.attr("axis", 0), len(shape))
    given = ctx.constant(1, "split") if ctx.has_input(1) else None
    total = shape[axis]
    if not isinstance(total, int):
        if given is None or given.ndim == 0:
            return [_rows(ctx, axis, 1 if given is None else int(given))]
        raise Unequal((total, int(given.sum())))
    if given is None:
        parts = [ctx.slice(value, {axis: Cut(n, 1)}) for n in range(total)]
        if not ctx.attr("keepdims", 1):
            rest = (*shape[:axis], *shape[axis + 1 :])
            parts = [ctx.reshape(part, rest) for part in parts]
        return [Listed(tuple(parts))]
    each = [int(n) for n in given.reshape(-1)]
    if given.ndim == 0:
        each = [min(each[0], total - at) for at in range(0, total, each[0])] if each[0] > 0 else []
    if sum(each) != total or min(each, default=0) < 0:
        raise Unsupported(f"split={each}", f"the parts must have {total} elements together")
    starts = [sum(each[:n]) for n in range(len(each))]
    cuts = zip(starts, each, strict=True)
    return [Listed(tuple(ctx.slice(value, {axis: Cut(at, n)}) for at, n in cuts))]


def _rows(ctx: NodeContext, axis: int, size: int) -> Rows:
    """Parts of *size* elements of an axis whose extent depends on sizes."""
    shape = ctx.shape()
    count = shape[axis] // size if size > 0 else 0
    if count * size != shape[axis]:
        raise ctx.undecided(f"parts of {size} of {shape[axis]} elements", [shape[axis]])
    before, behind = shape[:axis], shape[axis + 1 :]
    value = ctx.reshape(ctx.input(), (*before, count, size, *behind))
    moved = ctx.move_axis(value, axis, 0)
    keeps = ctx.has_input(1) or ctx.attr("keepdims", 1)
    return Rows(moved if keeps else ctx.reshape(moved, (count, *before, *behind)))


def _joined(ctx: NodeContext, value: str) -> str:
    """The rows of *value* along an axis."""
    shape = ctx.type_of(value).shape
    is_new = bool(ctx.attr("new_axis", 0))
    axis = ctx.axis(ctx.attr("axis", 0), len(shape) - 1 + is_new)
    moved = ctx.move_axis(value, 0, axis)
    if is_new:
        return moved
    rest = shape[1:]
    return ctx.reshape(moved, (*rest[:axis], shape[0] * rest[axis], *rest[axis + 1 :]))


def join(translator: Translator, ctx: NodeContext) -> list[Value]:
    """All tensors along an axis, which may be a new one."""
    held = translator.value(ctx.node.input[0])
    if isinstance(held, Rows):
        return [_joined(ctx, held.value)]
    items = list(_listed(translator, ctx).items)
    if not items:
        raise Unsupported("an empty sequence", "give at least one tensor")
    rank = len(ctx.type_of(items[0]).shape)
    is_new = bool(ctx.attr("new_axis", 0))
    axis = ctx.axis(ctx.attr("axis", 0), rank + is_new)
    if is_new:
        shapes = [ctx.type_of(item).shape for item in items]
        raised = ((*s[:axis], 1, *s[axis:]) for s in shapes)
        items = [ctx.reshape(item, shape) for item, shape in zip(items, raised, strict=True)]
    return [ctx.concat(items, axis)]


def each(translator: Translator, ctx: NodeContext) -> list[Value]:
    """SequenceMap: the body applied to the tensors with the same number of all sequences."""
    body = body_of(ctx, "body")
    names = [info.name for info in body.input]
    given = [translator.value(name) for name in ctx.node.input]
    count = len(_listed(translator, ctx).items)
    if any(isinstance(value, Listed) and len(value.items) != count for value in given):
        raise Unsupported("sequences of different lengths", "give them the same length")
    made: list[list[str]] = [[] for _ in body.output]
    for n in range(count):
        values = [value.items[n] if isinstance(value, Listed) else value for value in given]
        number = ctx.literal(n, DType.INT64)
        known = dict(zip(names, values, strict=True)) | ctx.numbered(number)
        results = translator.inlined(body, known)
        for held, result in zip(made, results, strict=True):
            if not isinstance(result, str):
                raise Unsupported("a body that gives a sequence", "let it give tensors")
            held.append(result)
    return [Listed(tuple(held)) for held in made]


def optional(translator: Translator, ctx: NodeContext) -> list[Value]:
    """An optional value that has the operand, or none."""
    if not ctx.node.input or not ctx.node.input[0]:
        return [Maybe(None)]
    value = translator.value(ctx.node.input[0])
    return [value if isinstance(value, Maybe) else Maybe(value)]


def get_element(translator: Translator, ctx: NodeContext) -> list[Value]:
    """What an optional value has; anything else is returned as it is."""
    value = translator.value(ctx.node.input[0])
    if isinstance(value, Maybe):
        if value.value is None:
            raise Unsupported("an optional without a value", "ask OptionalHasElement first")
        value = value.value
    return [value]


def has_element(translator: Translator, ctx: NodeContext) -> list[Value]:
    """Whether an optional value has one."""
    there = bool(ctx.node.input and ctx.node.input[0])
    if there:
        value = translator.value(ctx.node.input[0])
        there = not isinstance(value, Maybe) or value.value is not None
    return [ctx.builder.add_constant(ctx.node.output[0], np.asarray(there))]


def identity(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The operand itself, which is no tensor."""
    return [translator.value(ctx.node.input[0])]


OPERATORS = {
    "ConcatFromSequence": join,
    "Optional": optional,
    "OptionalGetElement": get_element,
    "OptionalHasElement": has_element,
    "SequenceAt": element,
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
    "SequenceMap": each,
    "SplitToSequence": split,
}
