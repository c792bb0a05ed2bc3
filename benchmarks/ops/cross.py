"""Every case compiled for another machine: does each program build there?"""

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
    """The reason of each case that does not compile for *target*, by name.

    Nothing is timed: each is compiled as it is predicted fastest.  Where this machine can run the
    target's code the result is checked as well.
    """
    failures: dict[str, str] = {}
    made_for = ap.Target.parse(target)
    for case in cases:
        start = monotonic()
        try:
            ap.tune(case.tensors(), effort="none", target=made_for, threads=threads, seed=seed)
            outcome = "ok"
        except AnsorpyError as error:
            failures[case.name] = outcome = error.message
        say(f"{case.name}: {monotonic() - start:.1f} s, {outcome}")
    return failures
