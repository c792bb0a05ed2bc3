"""Schedules as tokens: every primitive of a program as a row of numbers, without lowering it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final, TypeAlias

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.programs import Programs
from ansorpy.ir.tensor import ComputeOp
from ansorpy.schedule.decisions import Factors, OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.steps.base import Step
from ansorpy.schedule.steps.records import STEP_CLASSES

__all__ = ["KINDS", "NUMBERS", "tokens"]

KINDS: Final = 40
"""Columns for the kind of a primitive; spare ones let trained networks outlive new primitives."""

NUMBERS: Final = 20
"""Columns for the place and the arguments of a primitive; further ones are left out."""

_KIND = {step: n for n, step in enumerate(STEP_CLASSES, start=1)}
"""Kind 0 is the row with which every schedule begins."""

_Number: TypeAlias = float | Floats


def tokens(programs: Programs) -> Floats:
    """The primitives of each program in order: ``[programs, primitives + 1, KINDS + NUMBERS]``.

    A row has a 1 in the column of its kind, then as ``log2(1 + x)`` its place and the primitive's
    arguments in order: numbers, and stages and loops as numbers (:func:`_named`).  Of a split, the
    extent that it divides comes first.  The first row belongs to no primitive.
    """
    space, names = programs.space, _named(programs.space)
    steps = space.state.history
    found = np.zeros((len(programs), 1 + len(steps), KINDS + NUMBERS))
    found[:, 0, 0] = 1
    for row, step in enumerate(steps, start=1):
        found[:, row, _KIND[type(step)]] = 1
        numbers = [row, *_extent(space, step), *_arguments(programs, step, names)][:NUMBERS]
        for at, number in enumerate(numbers, start=KINDS):
            found[:, row, at] = np.log2(1.0 + np.maximum(number, 0))
    return found


def _named(space: Space) -> dict[str, int]:
    """The definition's stages and axes, numbered in order; later names follow as they occur."""
    operators = space.state.definition.ops
    stages = [op.name for op in operators]
    axes = [
        axis.name
        for op in operators
        if isinstance(op, ComputeOp)
        for axis in (*op.axes, *op.reduce_axes)
    ]
    return {name: n for n, name in enumerate(dict.fromkeys([*stages, *axes]))}


def _extent(space: Space, step: Step) -> list[float]:
    """The extent divided by open factors."""
    opened = step.open_columns
    return [
        float(d.domain.extent)
        for d in space.decisions
        if isinstance(d.domain, Factors) and opened and d.columns == opened
    ]


def _arguments(programs: Programs, step: Step, names: dict[str, int]) -> Iterator[_Number]:
    """The arguments as numbers; those that are open are columns of the table."""
    opened = iter(step.open_columns)
    columns = programs.space.columns
    for value in _flat([getattr(step, f.name) for f in fields(step) if f.name != "kind"]):
        if isinstance(value, str):
            yield float(names.setdefault(value, len(names)))
        elif isinstance(value, int):
            yield float(value)
        else:
            yield programs.table[:, columns.index(next(opened))].astype(np.float64)


def _flat(values: object) -> Iterator[str | int | OneOf | None]:
    """The strings, numbers and open numbers in nested sequences."""
    if isinstance(values, list | tuple):
        for value in values:
            yield from _flat(value)
    elif values is None or isinstance(values, str | int | OneOf):
        yield values
    else:
        raise TypeError(values)
