"""Reshapes, transposes, slices, pads, joins, gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["MOVEMENT"]


def _any(net: Growing) -> Value:
    """A value of any type, most often a float."""
    return net.pick() if net.chance(0.85) else net.one_of(net.values)


def _axis(net: Growing, x: Value) -> int:
    """An axis of *x*, which has one, counted from either end."""
    return net.count(-x.rank, x.rank - 1)


def reshape(net: Growing) -> None:
    """Axes joined or split, one size left to be inferred, or copied by 0."""
    x = _any(net)
    sizes = list(x.shape)
    for _ in range(net.count(1, 2)):
        at = net.count(0, len(sizes))
        if at + 1 < len(sizes) and net.chance():
            sizes[at : at + 2] = [prod(sizes[at : at + 2])]
        elif at < len(sizes):
            factors = [f for f in range(1, sizes[at] + 1) if sizes[at] % f == 0]
            first = net.one_of(factors)
            sizes[at : at + 1] = [first, sizes[at] // first]
        else:
            sizes.append(1)
    if net.chance(0.3) and sizes:
        sizes[net.count(0, len(sizes) - 1)] = -1
    net.add("Reshape", x, net.ints(*sizes))


def flatten(net: Growing) -> None:
    x = _any(net)
    net.add("Flatten", x, axis=net.count(0, x.rank))


def transpose(net: Growing) -> None:
    x = _sized(net)
    net.add("Transpose", x, perm=[int(p) for p in net.rng.permutation(x.rank)])


def squeeze(net: Growing) -> None:
    x = _any(net)
    ones = [a for a, extent in enumerate(x.shape) if extent == 1]
    if ones and net.chance():
        net.add("Squeeze", x, net.ints(*ones[: net.count(1, len(ones))]))
    elif x.rank < 5:
        net.add("Unsqueeze", x, net.ints(net.count(0, x.rank)))


def cut(net: Growing) -> None:
    """A slice along some axes, with steps of either sign."""
    x = _sized(net)
    axes = sorted({net.count(0, x.rank - 1) for _ in range(net.count(1, 2))})
    starts: list[int] = []
    ends: list[int] = []
    steps: list[int] = []
    for axis in axes:
        low, high = sorted(net.count(0, x.shape[axis]) for _ in range(2))
        high = max(high, min(low + 1, x.shape[axis]))
        low = min(low, high - 1)
        step = net.one_of([1, 1, 2, 3])
        if net.chance(0.2):
            starts, ends, steps = (
                [*starts, high - 1],
                [*ends, low - 1 - x.shape[axis]],
                [*steps, -step],
            )
        else:
            starts, ends, steps = [*starts, low], [*ends, high], [*steps, step]
    net.add("Slice", x, net.ints(*starts), net.ints(*ends), net.ints(*axes), net.ints(*steps))


def split(net: Growing) -> None:
    x = _sized(net)
    axis = _axis(net, x)
    extent = x.shape[axis]
    if extent < 2:
        return
    first = net.count(1, extent - 1)
    parts = net.several("Split", x, net.ints(first, extent - first), outputs=2, axis=axis)
    if net.chance(0.4):
        net.add("Concat", *reversed(parts), axis=axis)


def concat(net: Growing) -> None:
    """With values that differ along one axis only, or with a new input or constant."""
    x = _sized(net)
    axis = net.count(0, x.rank - 1)
    fits = [
        v for v in net.values
        if v.dtype == x.dtype and v.rank == x.rank
        and all(p == q for a, (p, q) in enumerate(zip(v.shape, x.shape, strict=True)) if a != axis)
    ]  # fmt: skip
    parts = [x, net.one_of(fits)]
    if net.chance(0.4):
        shape = [net.count(1, 5) if a == axis else e for a, e in enumerate(x.shape)]
        new = net.normal(*shape).round() if x.dtype.kind != "f" else net.normal(*shape)
        parts.append(net.like(x, np.abs(new)))
    net.rng.shuffle(parts)
    net.add("Concat", *parts, axis=axis)


def pad(net: Growing) -> None:
    x, mode = _sized(net), net.one_of(["constant", "constant", "reflect", "edge"])
    most = [min(2, e - 1) if mode == "reflect" else 2 for e in x.shape]
    sizes = [net.count(0, m) if net.chance() else 0 for m in (*most, *most)]
    if mode == "constant" and x.dtype.kind == "f" and net.chance():
        filled = net.like(x, net.normal())
        net.add("Pad", x, net.ints(*sizes), filled, mode=mode)
    else:
        net.add("Pad", x, net.ints(*sizes), mode=mode)


def spread(net: Growing) -> None:
    """Expand or Tile."""
    x = _any(net)
    if net.chance():
        repeats = [net.count(1, 2) for _ in x.shape]
        net.add("Tile", x, net.ints(*repeats))
    else:
        sizes = [net.count(1, 4) if e == 1 else e for e in x.shape]
        net.add("Expand", x, net.ints(*[net.count(1, 2)] * net.count(0, 1), *sizes))


def blocks(net: Growing) -> None:
    x = net.pick_rank(4, 4)
    if x.shape[1] % 4 == 0 and net.chance():
        net.add("DepthToSpace", x, blocksize=2, mode=net.one_of(["DCR", "CRD"]))
    elif x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0:
        net.add("SpaceToDepth", x, blocksize=2)


def gather(net: Growing) -> None:
    """Rows at constant or given places, negative ones among the constant."""
    x = _sized(net)
    axis = _axis(net, x)
    extent = x.shape[axis]
    shape = net.shape(0, 2)
    if net.chance(0.3) and extent >= 6:  # given places are -5 to 5
        net.add("Gather", x, net.new_input(shape[:1], np.int64), axis=axis)
    else:
        net.add("Gather", x, net.constant(net.rng.integers(-extent, extent, shape)), axis=axis)


def gather_elements(net: Growing) -> None:
    x = _sized(net)
    axis = _axis(net, x)
    places = net.rng.integers(-x.shape[axis], x.shape[axis], x.shape)
    net.add("GatherElements", x, net.constant(places), axis=axis)


def gather_nd(net: Growing) -> None:
    x = _sized(net)
    depth = net.count(1, x.rank)
    rows = [net.rng.integers(0, e, net.count(1, 4)) for e in x.shape[:depth]]
    many = min(map(len, rows))
    net.add("GatherND", x, net.constant(np.stack([row[:many] for row in rows], axis=-1)))


def scatter(net: Growing) -> None:
    """Elements or rows replaced, or added to, at constant places."""
    x = net.pick(lambda v: v.rank > 0)
    extent = x.shape[0]
    rows = net.rng.permutation(extent)[: net.count(1, extent)]
    how: dict[str, Any] = {"reduction": net.one_of(["none", "none", "add", "mul", "max"])}
    updates = net.like(x, net.normal(len(rows), *x.shape[1:]))
    if net.chance():
        net.add("ScatterND", x, net.constant(rows[:, None].astype(np.int64)), updates, **how)
    else:
        shape = (-1, *[1] * (x.rank - 1))
        places = np.broadcast_to(rows.reshape(shape), updates.shape).astype(np.int64)
        net.add("ScatterElements", x, net.constant(places), updates, axis=0, **how)


def shape_arithmetic(net: Growing) -> None:
    """A reshape to a shape that the model computes, as exporters write it."""
    x = _sized(net)
    sizes = net.add("Shape", x)
    first = net.add("Slice", sizes, net.ints(0), net.ints(1))
    net.add("Reshape", x, net.add("Concat", first, net.ints(-1), axis=0))


def _sized(net: Growing) -> Value:
    """A value with an axis."""
    x = _any(net)
    return x if x.rank else net.add("Reshape", x, net.ints(1))


MOVEMENT: dict[Callable[[Growing], None], float] = {
    reshape: 2, flatten: 0.5, transpose: 2, squeeze: 1, cut: 1.5, split: 1, concat: 2, pad: 1,
    spread: 1, blocks: 0.7, gather: 1, gather_elements: 0.4, gather_nd: 0.3, scatter: 0.6,
    shape_arithmetic: 0.6,
}  # fmt: skip
