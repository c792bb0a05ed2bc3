"""Operators that choose elements, whose results have as many as a run finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value, is_float

__all__ = ["SELECTION"]


def places(net: Growing) -> None:
    """The places of what is not zero, and what stands there."""
    x = net.pick_flags() if net.chance(0.4) else net.pick_integer()
    x = x if x.rank else net.add("Reshape", x, net.ints(1))
    found = net.add("NonZero", x, opened=True)
    if net.chance():
        rows = net.add("Transpose", found, perm=[1, 0])
        _followed(net, net.add("GatherND", x, rows))


def compressed(net: Growing) -> None:
    """The rows, or all elements, that flags choose; there may be fewer flags than elements."""
    x = net.pick_rank(1, 4) if net.chance(0.8) else net.pick_integer()
    x = x if x.rank else net.add("Reshape", x, net.ints(1))
    axis = net.count(0, x.rank - 1) if net.chance(0.7) else None
    extent = x.size if axis is None else x.shape[axis]
    flags = net.given(net.rng.random(net.count(1, extent)) < 0.6)
    given: dict[str, Any] = {} if axis is None else {"axis": axis}
    _followed(net, net.add("Compress", x, flags, opened=True, **given))


def unique(net: Growing) -> None:
    x = net.pick_integer() if net.chance(0.7) else net.pick_rank(1, 3)
    x = x if x.rank else net.add("Reshape", x, net.ints(1))
    given: dict[str, Any] = {"sorted": net.count(0, 1)}
    if net.chance(0.4):
        given["axis"] = net.count(-x.rank, x.rank - 1)
    outputs = net.one_of([1, 2, 3, 4])
    first = net.several("Unique", x, outputs=outputs, opened=True, **given)[0]
    _followed(net, first)


def boxes(net: Growing) -> None:
    """Boxes of high scores that overlap no better ones."""
    batch, classes, many = net.count(1, 2), net.count(1, 3), net.one_of([1, 7, 23])
    corners = net.uniform(0.0, 3.0, batch, many, 4)
    corners[..., 2:] += 0.5
    held = net.given(corners, np.float32)
    scores = net.given(net.uniform(0.0, 1.0, batch, classes, many), np.float32)
    most = net.constant(np.array([net.count(1, 5)]))
    limits = [net.constant(np.array([net.uniform(0.1, 0.7)]), np.float32) for _ in range(2)]
    found = net.add(
        "NonMaxSuppression", held, scores, most, *limits, opened=True,
        center_point_box=net.count(0, 1),
    )  # fmt: skip
    _followed(net, found)


def long_top(net: Growing) -> None:
    """The largest or smallest of many, as many as are given; a run may tell how many."""
    shape = [net.one_of([1, 2, 5]), net.one_of([7, 64, 101, 300, 700])]
    kind = net.one_of([np.float32, np.int64, np.int8, None])
    x = net.new_input(shape, kind)
    axis = net.one_of([1, -1, 0])
    many = net.given(np.array([net.count(1, min(40, x.shape[axis]))]))
    given = {"largest": net.count(0, 1), "axis": axis, "sorted": 1}
    known = many.name in net.constants
    values, _ = net.several("TopK", x, many, outputs=2, opened=not known, **given)
    if not known:
        _followed(net, values)


def ties(net: Growing) -> None:
    """The place of the largest element, where several are as large."""
    x = net.pick_integer()
    x = x if x.rank else net.add("Reshape", x, net.ints(1))
    net.add(
        net.one_of(["ArgMax", "ArgMin"]), x, axis=net.count(-x.rank, x.rank - 1),
        select_last_index=net.count(0, 1), keepdims=net.count(0, 1),
    )  # fmt: skip


def _followed(net: Growing, x: Value) -> None:
    """What is done with as many elements as a run finds: they are mapped, or summed up."""
    if is_float(x.dtype) and net.chance():
        x = net.add(net.one_of(["Neg", "Tanh", "Abs"]), x)
    way = net.count(0, 2)
    if way == 0 and (is_float(x.dtype) or x.dtype in (np.int32, np.int64)):
        axes = net.ints(*range(x.rank))
        net.add("ReduceSum", x, axes, keepdims=net.count(0, 1), opened=False)
    elif way == 1:
        net.add("Shape", x, opened=False)


SELECTION: dict[Callable[[Growing], None], float] = {
    places: 0.4, compressed: 0.4, unique: 0.4, boxes: 0.3, long_top: 0.4, ties: 0.3
}  # fmt: skip
