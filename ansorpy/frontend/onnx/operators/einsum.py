"""Einsum: operands are contracted from left to right, with one matrix product each.

Shared axes that are needed later are batch axes; the other shared axes are summed over.  If there
are none to sum over, an elementwise product is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ansorpy.frontend.onnx.context import Cut, NodeContext
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, MatMul, Reduce, ReduceKind, Shape
from ansorpy.ir.extents import prod_of

__all__ = ["OPERATORS"]


def einsum(ctx: NodeContext) -> str:
    """Supports any number of operands, ellipses, repeated and missing labels, implied results."""
    operands, wanted = _parsed(ctx)
    terms = [
        _diagonal(ctx, value, labels) for value, labels in zip(ctx.inputs, operands, strict=True)
    ]
    value, labels = terms[0]
    for n, (other, named) in enumerate(terms[1:], 2):
        later = {*wanted, *(label for _, more in terms[n:] for label in more)}
        value, labels = _without_units(ctx, value, labels, other, named, later)
        other, named = _without_units(ctx, other, named, value, labels, later)
        value, labels = _summed(ctx, value, labels, {*named, *later})
        other, named = _summed(ctx, other, named, {*labels, *later})
        value, labels = _contracted(ctx, value, labels, other, named, later)
    value, labels = _summed(ctx, value, labels, set(wanted))
    missing = [label for label in wanted if label not in labels]
    if missing:
        raise Unsupported(f"equation={ctx.attr('equation', '')}", f"no operand has {missing[0]}")
    return ctx.transpose(value, tuple(labels.index(label) for label in wanted))


def _parsed(ctx: NodeContext) -> tuple[list[str], str]:
    """The labels of each operand and of the result; axes of an ellipsis have digits as labels."""
    equation = ctx.attr("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ctx.inputs):
        raise Unsupported(f"equation={equation}", f"name {len(ctx.inputs)} operands")
    spare = 0
    operands: list[str] = []
    for n, term in enumerate(terms):
        more = len(ctx.shape(n)) - len(term.replace("...", ""))
        if more < 0 or (more and "..." not in term) or more > 10:
            raise Unsupported(f"equation={equation}", f"operand {n} has shape {ctx.shape(n)}")
        spare = max(spare, more)
        operands.append(term.replace("...", "".join(map(str, range(more)))[::-1]))
    ellipsis = "".join(map(str, range(spare)))[::-1]
    if not arrow:
        count = Counter(left.replace("...", "").replace(",", ""))
        return operands, ellipsis + "".join(sorted(k for k, times in count.items() if times == 1))
    return operands, right.replace("...", ellipsis)


def _diagonal(ctx: NodeContext, value: str, labels: str) -> tuple[str, str]:
    """*value* with axes of the same label replaced by a single axis, their diagonal."""
    for label, times in Counter(labels).items():
        for _ in range(times - 1):
            first, second = [d for d, name in enumerate(labels) if name == label][:2]
            rest = [d for d in range(len(labels)) if d not in (first, second)]
            value = ctx.transpose(value, (*rest, first, second))
            *shape, n, m = ctx.type_of(value).shape
            if n != m:
                raise Unsupported(f"axes {label}", f"they have {n} and {m} elements")
            value = ctx.reshape(value, (*shape, n * n))
            value = ctx.slice(value, {len(shape): Cut(0, n, n + 1)})
            labels = "".join(labels[d] for d in rest) + label
    return value, labels


def _summed(ctx: NodeContext, value: str, labels: str, kept: set[str]) -> tuple[str, str]:
    """*value* summed over the axes whose labels are not in *kept*."""
    axes = tuple(d for d, label in enumerate(labels) if label not in kept)
    if axes:
        value = ctx.cast(ctx.emit(Reduce(ReduceKind.SUM, axes, False), [value]), ctx.type().dtype)
    return value, "".join(label for label in labels if label in kept)


def _without_units(
    ctx: NodeContext, value: str, labels: str, other: str, named: str, later: set[str]
) -> tuple[str, str]:
    """*value* without axes of one element that are summed with longer ones of *other*."""
    own, sizes = _sizes(ctx, value, labels), _sizes(ctx, other, named)
    kept = "".join(x for x in labels if x in later or own[x] != 1 or sizes.get(x, 1) == 1)
    return ctx.reshape(value, tuple(own[label] for label in kept)), kept


def _contracted(
    ctx: NodeContext, a: str, left: str, b: str, right: str, later: set[str]
) -> tuple[str, str]:
    """The product of two operands, and its labels; *later* holds the labels still needed."""
    shared = [label for label in left if label in right]
    batch = [label for label in shared if label in later]
    summed = [label for label in shared if label not in later]
    rows = [label for label in left if label not in shared]
    columns = [label for label in right if label not in shared]
    if not summed:
        return _outer(ctx, a, left, b, right)
    sizes = _sizes(ctx, a, left) | _sizes(ctx, b, right)

    def matrix(value: str, labels: str, groups: Sequence[list[str]]) -> str:
        """*value* as a batch of matrices; each axis merges the axes of one group."""
        own = _sizes(ctx, value, labels)
        order = [label for group in (batch, *groups) for label in group]
        value = ctx.transpose(value, tuple(labels.index(label) for label in order))
        shape = [own[label] for label in batch]
        return ctx.reshape(value, (*shape, *(prod_of(own[x] for x in g) for g in groups)))

    product = ctx.emit(
        MatMul(), [matrix(a, left, (rows, summed)), matrix(b, right, (summed, columns))]
    )
    shape = ctx.type_of(product).shape[: len(batch)]
    shape += tuple(sizes[label] for label in (*rows, *columns))
    return ctx.reshape(product, shape), "".join((*batch, *rows, *columns))


def _outer(ctx: NodeContext, a: str, left: str, b: str, right: str) -> tuple[str, str]:
    """The elementwise product of the broadcast operands, and its labels."""
    labels = left + "".join(label for label in right if label not in left)

    def spread(value: str, own: str) -> str:
        order = [label for label in labels if label in own]
        value = ctx.transpose(value, tuple(own.index(label) for label in order))
        sizes = _sizes(ctx, value, "".join(order))
        return ctx.reshape(value, tuple(sizes.get(label, 1) for label in labels))

    return ctx.apply(Fn.MUL, spread(a, left), spread(b, right)), labels


def _sizes(ctx: NodeContext, value: str, labels: str) -> dict[str, int]:
    shape: Shape = ctx.type_of(value).shape
    return dict(zip(labels, shape, strict=True))


OPERATORS = {"Einsum": einsum}
