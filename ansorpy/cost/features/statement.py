"""Features of the statement itself: operations, loop annotations, allocation, and outer loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.cost.counts import ClassCounts
from ansorpy.cost.features.group import FeatureGroup
from ansorpy.cost.nest_view import LeafView
from ansorpy.ir.loops import LAUNCH_INDICES, ForKind

__all__ = ["ALLOCATION", "ANNOTATIONS", "GPU", "OPERATIONS", "OUTER"]

_OP_FIELDS = tuple(f.name for f in fields(ClassCounts))
_POSITIONS = (
    "none", "inner_space", "middle_space", "outer_space",
    "inner_reduce", "middle_reduce", "outer_reduce", "mixed",
)  # fmt: skip
_GPU_KINDS = (*LAUNCH_INDICES, ForKind.VTHREAD)


def _operations(view: LeafView) -> list[Floats | float]:
    ops = view.ops
    counts = [getattr(ops.floats, name) for name in _OP_FIELDS]
    counts += [getattr(ops.ints, name) for name in _OP_FIELDS]
    counts += [ops.bools, ops.selects]
    return [count * view.evaluations if count else 0.0 for count in counts]


OPERATIONS = FeatureGroup(
    "operations",
    "how many operations of each kind the whole statement performs",
    (
        *(f"float_{f}" for f in _OP_FIELDS),
        *(f"int_{f}" for f in _OP_FIELDS),
        "bool_op",
        "select_op",
    ),
    _operations,
)


def _annotation(view: LeafView, marked: Mapping[int, Masks]) -> list[Floats | float]:
    """Count, product of extents and innermost extent of the marked loops, then their position."""
    if not marked:
        return [0.0, 0.0, 0.0, 1.0, *(0.0 for _ in _POSITIONS[1:])]
    number, total, innermost = np.zeros(view.rows), np.ones(view.rows), np.zeros(view.rows)
    for loop, mask in marked.items():
        number += mask
        total = np.where(mask, total * view.extent[loop], total)
        innermost = np.where(mask, view.extent[loop], innermost)
    some = number > 0
    positions: list[Floats | float] = [0.0 for _ in _POSITIONS]
    positions[0], positions[-1] = (~some).astype(np.float64), some.astype(np.float64)
    return [number, np.where(some, total, 0.0), innermost, *positions]


def _annotations(view: LeafView) -> list[Floats | float]:
    marks = (view.vector, view.unroll, view.parallel)
    return [value for marked in marks for value in _annotation(view, marked)]


_MARK_NAMES = ("vec", "unroll", "parallel")
ANNOTATIONS = FeatureGroup(
    "annotations",
    "the vectorised, unrolled and parallel loops; TVM only ever writes positions none and mixed",
    tuple(
        f"{mark}_{value}"
        for mark in _MARK_NAMES
        for value in ("num", "prod", "len", *(f"pos_{p}" for p in _POSITIONS))
    ),
    _annotations,
)


def _gpu(view: LeafView) -> list[Floats | float]:
    bound = [loop.index for loop in view.leaf.loops]
    lengths: list[Floats | float] = []
    for kind in _GPU_KINDS:
        length: Floats | float = 1.0
        for loop, index in enumerate(bound):
            if index is kind:
                length = length * view.extent[loop]
        lengths.append(length)
    return [float(any(kind in _GPU_KINDS for kind in bound)), *lengths]


GPU = FeatureGroup(
    "gpu",
    "whether loops are bound to GPU threads, and their lengths by binding",
    ("is_gpu", *(f"{kind.value}_len" for kind in _GPU_KINDS)),
    _gpu,
)


def _allocation(view: LeafView) -> list[Floats | float]:
    """Allocation features; zeros when the caller allocates the buffer."""
    written = view.written
    if written.is_output:
        return [0.0] * 4
    outer = view.outer_prod[written.alloc_depth]
    elems = written.elems
    return [elems * written.elem_bytes, elems * outer, outer, view.evaluations / outer]


ALLOCATION = FeatureGroup(
    "allocation",
    "size of the written buffer, how often it is allocated, and the work inside one allocation",
    ("alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod"),
    _allocation,
)


def _outer(view: LeafView) -> list[Floats | float]:
    loops = np.zeros(view.rows)
    for real in view.real.values():
        loops += real
    return [view.evaluations, loops, view.max_unroll]


OUTER = FeatureGroup(
    "outer",
    "evaluations of the body, loops around it (those of extent 1 do not count), unroll limit",
    ("outer_prod", "num_loops", "auto_unroll_max_step"),
    _outer,
)
