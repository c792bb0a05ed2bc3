"""Gathers and scatters at places that a run knows, with all reductions."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["SCATTERS"]

_REDUCTIONS = ("none", "add", "mul", "max", "min")


def elements(net: Growing) -> None:
    """Elements set or combined along an axis; several at one place only where they are combined."""
    x = _target(net)
    axis = net.count(-x.rank, x.rank - 1)
    how = net.one_of(_REDUCTIONS)
    shape = [net.count(1, extent) for extent in x.shape]
    extent = x.shape[axis]
    if how == "none":
        line = net.rng.permutation(extent)[: shape[axis]]
        places = np.broadcast_to(np.expand_dims(line, _others(axis, x.rank)), shape)
    else:
        places = net.rng.integers(-extent, extent, shape)
    updates = _updates(net, x, shape)
    net.add("ScatterElements", x, net.given(places), updates, axis=axis, reduction=how)


def rows(net: Growing) -> None:
    """Rows, or elements, set or combined at places of several axes."""
    x = _target(net)
    depth, how = net.count(1, x.rank), net.one_of(_REDUCTIONS)
    reached = prod(x.shape[:depth])
    flat = (
        net.rng.permutation(reached)[: net.count(1, min(reached, 6))]
        if how == "none" else net.rng.integers(0, reached, net.count(1, 6))
    )  # fmt: skip
    places = np.stack(np.unravel_index(flat, x.shape[:depth]), axis=-1)
    updates = _updates(net, x, [len(flat), *x.shape[depth:]])
    net.add("ScatterND", x, net.given(places), updates, reduction=how)


def cache(net: Growing) -> None:
    """Rows written into a cache; with the mode ``circular`` they go on at its beginning."""
    if net.opset < 24:  # which has no TensorScatter
        return
    batch, room, width = net.count(1, 3), net.count(2, 7), net.count(1, 5)
    heads = [net.count(1, 3)] if net.chance() else []
    new, mode = net.count(1, room), net.one_of(["linear", "circular"])
    past = net.new_input([batch, *heads, room, width])
    last = room - 1 if mode == "circular" else room - new
    first = [net.given(net.rng.integers(0, last + 1, batch))] if net.chance(0.8) else []
    update = net.new_input([batch, *heads, new, width])
    net.add("TensorScatter", past, update, *first, mode=mode)


def gathered_rows(net: Growing) -> None:
    """Rows of each batch at places of its own."""
    x = net.pick_rank(2, 4)
    batch = net.count(0, x.rank - 2)
    depth = net.count(1, x.rank - batch)
    shape = [*x.shape[:batch], *([net.count(1, 4)] if net.chance() else [])]
    columns = [net.rng.integers(-e, e, shape) for e in x.shape[batch : batch + depth]]
    net.add("GatherND", x, net.given(np.stack(columns, axis=-1)), batch_dims=batch)


def gathered_elements(net: Growing) -> None:
    x = _target(net)
    axis = net.count(-x.rank, x.rank - 1)
    shape = [net.count(1, 5) if n == axis % x.rank else extent for n, extent in enumerate(x.shape)]
    places = net.rng.integers(-x.shape[axis], x.shape[axis], shape)
    net.add("GatherElements", x, net.given(places), axis=axis)


def numbered(net: Growing) -> None:
    """Ones at places that may be outside, of any type."""
    kind = net.one_of([np.float32, np.int64, np.int32])
    ends = net.constant(net.rng.integers(-3, 4, 2).astype(kind), kind)
    depth = net.count(1, 6)
    marks = net.given(net.rng.integers(-depth, depth, net.shape(1, 2)))
    net.add("OneHot", marks, net.constant(np.asarray(depth)), ends, axis=net.one_of([-1, 0]))


def _others(axis: int, rank: int) -> tuple[int, ...]:
    return tuple(n for n in range(rank) if n != axis % rank)


def _target(net: Growing) -> Value:
    x = net.pick_rank(1, 4) if net.chance(0.7) else net.pick_integer()
    return x if x.rank else net.add("Reshape", x, net.ints(1))


def _updates(net: Growing, x: Value, shape: list[int]) -> Value:
    whole = net.rng.integers(0, 3, shape) if x.dtype.kind in "iu" else net.normal(*shape)
    return net.given(whole.astype(x.dtype))


SCATTERS: dict[Callable[[Growing], None], float] = {
    elements: 0.5, rows: 0.5, cache: 0.4, gathered_rows: 0.4, gathered_elements: 0.3, numbered: 0.3
}  # fmt: skip
