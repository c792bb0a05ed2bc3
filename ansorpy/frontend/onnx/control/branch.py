"""If: the branch taken if that is known, or both branches, of which a run takes one.

Where sizes in a branch depend on data, or one branch gives nothing and the other one something, a
run computes both.
"""

from __future__ import annotations

from ansorpy.frontend.onnx.context import Cut, NodeContext
from ansorpy.frontend.onnx.control.scopes import Blamed, Inner, Translator, body_of
from ansorpy.frontend.onnx.control.values import Listed, Maybe, Rows, Value, leaves, with_leaves
from ansorpy.frontend.onnx.quantized.narrow import kinds_of, refused
from ansorpy.frontend.onnx.unsupported import Unknown, Unsupported
from ansorpy.graph.ir import Graph, Output
from ansorpy.graph.ops import Fn, TensorType
from ansorpy.graph.regions import BranchRegion, Result
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def branch(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The results of one branch, translated in place if the condition is known."""
    condition = ctx.input(0)
    held = ctx.builder.constants.get(condition)
    if held is not None:
        taken = "then_branch" if held.item() else "else_branch"
        return translator.inlined(body_of(ctx, taken), {})
    count, refusal = len(translator.rows), None
    try:
        with translator.both():
            found = _compiled(translator, ctx)
    except (Blamed, Unsupported) as error:
        refusal = error
    reason = ctx.unknown("condition", condition) if len(translator.rows) > count else None
    if reason is not None and not isinstance(reason, Unknown):
        # It follows from sizes; at those that decide it, only one branch has to be possible.
        del translator.rows[count:]
        raise Unsupported(reason.attribute, f"{reason.advice}, or a range that decides it")
    if refusal is not None:
        raise refusal
    return found


def _compiled(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The results of a branch that a run chooses."""
    bodies = []
    for name in ("then_branch", "else_branch"):
        with translator.inside() as inner:
            bodies.append((inner, translator.inlined(body_of(ctx, name), {})))
    (then, made), (other, others) = bodies
    pairs = [(_kinds(then, a), _kinds(other, b)) for a, b in zip(made, others, strict=True)]
    if then.builder.counts or other.builder.counts or any(a != b for a, b in pairs):
        return _of_both(translator, ctx)
    # What has no elements is a constant.
    names = [leaf for value in made for leaf in leaves(value)]
    types, narrow = then.builder.types, then.builder.narrow
    chosen = [number for number, name in enumerate(names) if types[name].size != 0]
    graphs = [_finished(inner, values, chosen) for inner, values in bodies]
    operands = [ctx.input(0), *dict.fromkeys([*then.captured, *other.captured])]
    numbers = {value: number for number, value in enumerate(operands)}
    reads = [tuple(numbers[value] for value in inner.captured) for inner, _ in bodies]
    region = BranchRegion(graphs[0], graphs[1], reads[0], reads[1])
    found = iter([
        ctx.emit(Result(region, chosen.index(number)), operands)
        if number in chosen
        else ctx.builder.add_empty(ctx.node.output[0], types[name], narrow.get(name))
        for number, name in enumerate(names)
    ])  # fmt: skip
    return [with_leaves(value, found) for value in made]


def _finished(inner: Inner, made: list[Value], chosen: list[int]) -> Graph:
    names = [leaf for value in made for leaf in leaves(value)]
    return inner.finish([Output(f"made.{n}", names[n]) for n in chosen], [])


Kind = tuple[str, tuple[TensorType, ...]]


def _kinds(inner: Inner, value: Value) -> Kind:
    """What kind of value this is, and the types of the tensors in it."""
    kind = {Listed: "sequence", Maybe: "optional", Rows: "rows"}.get(type(value), "tensor")
    return kind, tuple(inner.builder.types[leaf] for leaf in leaves(value))


def _of_both(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The results of two branches that a run computes both."""
    then, other = (
        translator.inlined(body_of(ctx, name), {}) for name in ("then_branch", "else_branch")
    )
    return [_chosen(ctx, a, b) for a, b in zip(then, other, strict=True)]


def _chosen(ctx: NodeContext, then: Value, other: Value) -> Value:
    """One of two tensors of the same shape, or of which one has no rows along an axis."""
    types = ctx.builder.types
    if not isinstance(then, str) or not isinstance(other, str):
        raise _different(ctx, str(then), str(other))
    a, b = types[then], types[other]
    holds = ctx.reshape(ctx.input(0), ())
    if a == b:
        if a.size == 0:
            return then
        if narrow := kinds_of(ctx.builder, (then, other)):
            raise refused(next(iter(narrow.values())))
        return ctx.apply(Fn.WHERE, holds, then, other)
    axes = [d for d, pair in enumerate(zip(a.shape, b.shape, strict=False)) if pair[0] != pair[1]]
    (axis, *more) = axes or [0, 0]
    none, some = (then, other) if a.size == 0 else (other, then)
    alike = a.dtype is b.dtype and len(a.shape) == len(b.shape) and not more
    if not alike or types[none].shape[axis] != 0:
        raise _different(ctx, str(a), str(b))
    extent = types[some].shape[axis]
    counts = [ctx.size(t.shape[axis], DType.INT64) for t in (a, b)]
    count = ctx.builder.counted(ctx.apply(Fn.WHERE, holds, *counts), extent)
    return ctx.slice(some, {axis: Cut(0, count)})


def _different(ctx: NodeContext, then: str, other: str) -> Unsupported:
    """The reason why which branch is taken would have to be known."""
    what = f"condition, as the branches give {then} and {other}"
    ctx.constant(0, what)
    return Unsupported(what, "let both give the same")


OPERATORS = {"If": branch}
