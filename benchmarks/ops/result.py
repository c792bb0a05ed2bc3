"""Result of one case at one thread count, stored as JSON and read back for tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ansorpy.errors import ForeignFile, UsageError
from benchmarks.common.compared import Compared, Machine, Stored

__all__ = ["Result", "Run", "merged", "read_run"]


class Result(Compared):
    """Result of one comparison.

    Args:
        failures: Reason for each engine that failed.
        roofline_ms: Time of the definition's operations at the measured peak, or of its bytes at
            the bandwidth measured for that size, whichever is longer.
        bound: Which of these is longer, ``compute`` or ``bytes``.
        fork_join_ms: Overhead of a parallel region; 0 with one thread.
        algorithm: Name of the definition that the program computes, such as ``direct``.
        program: The loop nest found.
        trials: Programs to measure that were asked for; 0 without a search.
    """

    case: str
    group: str
    threads: int
    failures: Mapping[str, str]
    flops: float
    bytes: int
    peak_gflops: float
    bandwidth_gbytes: float
    roofline_ms: float
    bound: str
    fork_join_ms: float
    tuning_s: float
    algorithm: str
    program: str
    trials: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """Identifier of the result; a later result with the same key replaces it."""
        return self.case, self.threads

    @property
    def provider(self) -> str | None:
        """Whoever computes the case fastest, we or a peer; None if all failed."""
        return min(self.engines, key=lambda name: self.engines[name].median_ms, default=None)

    @property
    def share(self) -> float | None:
        """Roofline divided by our time; above 1 if another algorithm needs fewer operations."""
        return None if self.ours_ms is None else self.roofline_ms / self.ours_ms

    @property
    def share_after_fork(self) -> float | None:
        """Roofline plus one fork-join, divided by our time."""
        if self.ours_ms is None:
            return None
        return (self.roofline_ms + self.fork_join_ms) / self.ours_ms


class Run(Stored):
    """A file of results, with the conditions under which they were measured.

    ``calls`` has the results of a nearly empty case, which give the cost of a call in each engine.
    """

    machine: Machine
    effort: str
    seed: int
    calls: tuple[Result, ...]
    results: tuple[Result, ...]

    def to_json(self) -> str:
        """The file's text; its ratios are for other readers and ignored when it is read back."""
        data = self.model_dump()
        for row, result in zip(data["results"], self.results, strict=True):
            row["ratio"], row["share"] = result.ratio, result.share
        return json.dumps(data, indent=2) + "\n"

    def onto(self, earlier: Run) -> Run:
        """This run, plus the results that only *earlier* has.

        Raises:
            UsageError: The earlier run was of another machine, effort or seed.
        """
        for name in ("machine", "effort", "seed"):
            before, now = getattr(earlier, name), getattr(self, name)
            if before != now:
                raise UsageError(
                    f"the file has results of {name} {before}, these are of {now}",
                    hint="name another file",
                )
        return self.model_copy(
            update={
                "calls": merged(earlier.calls, self.calls),
                "results": merged(earlier.results, self.results),
            }
        )


def read_run(path: Path) -> Run:
    """Read what :meth:`Run.to_json` wrote.

    Raises:
        ForeignFile: *path* is not such a file.
    """
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        for row in data["results"]:
            row.pop("ratio"), row.pop("share")
        return Run.model_validate(data)
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        raise ForeignFile(f"{path} has no results of benchmarks.ops: {error}") from None


def merged(earlier: Iterable[Result], later: Iterable[Result]) -> tuple[Result, ...]:
    """All results, each key once: the latest result, at the position of the first."""
    found = {result.key: result for result in earlier}
    found.update({result.key: result for result in later})
    return tuple(found.values())
