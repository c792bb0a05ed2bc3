"""Compile every case for another machine, to check that each program builds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic

import ansorpy as ap
from ansorpy.errors import AnsorpyError
from benchmarks.ops.case import Case

__all__ = ["compile_all"]


def compile_all(
    cases: Iterable[Case], target: str, threads: int, seed: int, say: Callable[[str], None]
) -> dict[str, str]:
    """Compile all cases for *target*; return the reason of each failure by case name.

    Nothing is timed: the program predicted fastest is compiled, and its result is checked if this
    machine can run the target's code.

    Raises:
        UsageError: There is no such target.
    """
    failures: dict[str, str] = {}
    made_for = ap.Target.parse(target)
    for case in cases:
        start, outcome = monotonic(), "ok"
        try:
            ap.tune(case.tensors(), effort="none", target=made_for, threads=threads, seed=seed)
        except AnsorpyError as error:
            failures[case.name] = outcome = error.message
        say(f"{case.name}: {monotonic() - start:.1f} s, {outcome}")
    return failures
