"""If: the branch taken if that is known, or both branches, of which a run takes one."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.frontend.onnx.control.scopes import Inner, Translator, body_of
from ansorpy.frontend.onnx.control.values import Listed, Maybe, Value, leaves, with_leaves
from ansorpy.graph.ir import Graph, Output
from ansorpy.graph.ops import TensorType
from ansorpy.graph.regions import Branches, Result

__all__ = ["OPERATORS"]


def branch(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The results of one branch, translated in place if the condition is known."""
    condition = ctx.input(0)
    held = ctx.builder.constants.get(condition)
    if held is not None:
        taken = "then_branch" if held.item() else "else_branch"
        return translator.inlined(body_of(ctx, taken), {})
    bodies = []
    for name in ("then_branch", "else_branch"):
        with translator.inside() as inner:
            bodies.append((inner, translator.inlined(body_of(ctx, name), {})))
    (then, made), (other, others) = bodies
    for a, b in zip(made, others, strict=True):
        _demand_alike(ctx, _kinds(then, a), _kinds(other, b))
    # What has no elements is a constant.
    names = [leaf for value in made for leaf in leaves(value)]
    kinds = [then.builder.types[name] for name in names]
    chosen = [number for number, kind in enumerate(kinds) if kind.size != 0]
    graphs = [_finished(inner, values, chosen) for inner, values in bodies]
    operands = [condition, *dict.fromkeys([*then.captured, *other.captured])]
    numbers = {value: number for number, value in enumerate(operands)}
    reads = [tuple(numbers[value] for value in inner.captured) for inner, _ in bodies]
    region = Branches(graphs[0], graphs[1], reads[0], reads[1])
    found = iter([
        ctx.emit(Result(region, chosen.index(number)), operands)
        if number in chosen else ctx.builder.add_empty(ctx.node.output[0], kind)
        for number, kind in enumerate(kinds)
    ])  # fmt: skip
    return [with_leaves(value, found) for value in made]


def _finished(inner: Inner, made: list[Value], chosen: list[int]) -> Graph:
    names = [leaf for value in made for leaf in leaves(value)]
    return inner.finish([Output(f"made.{n}", names[n]) for n in chosen], [])


Kind = tuple[str, tuple[TensorType, ...]]


def _kinds(inner: Inner, value: Value) -> Kind:
    """What kind of value this is, and the types of the tensors in it."""
    kind = {Listed: "sequence", Maybe: "optional"}.get(type(value), "tensor")
    return kind, tuple(inner.builder.types[leaf] for leaf in leaves(value))


def _demand_alike(ctx: NodeContext, then: Kind, other: Kind) -> None:
    """Refuse branches that give different types: which one is taken would have to be known."""
    if then != other:
        what = f"condition, as the branches give {_text(then)} and {_text(other)}"
        ctx.constant(0, what)
        raise Unsupported(what, "let both give the same")


def _text(kind: Kind) -> str:
    name, types = kind
    told = ", ".join(f"{t.dtype.value}{list(t.shape)}" for t in types)
    return told if name == "tensor" else f"{name} of {told or 'nothing'}"


OPERATORS = {"If": branch}
