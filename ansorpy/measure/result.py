"""Result of measuring one candidate: a time, or the reason why there is none."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from enum import Enum

__all__ = ["MeasureResult", "TrialKind", "out_of_time"]


class TrialKind(Enum):
    """How a trial ended.  Only an OK program is kept; a SLOW one was stopped early but has a time.

    A REFUTED program may give the right result, but isl shows that it does not access memory as it
    should (docs/concepts/proofs.md).  CUT is no verdict: the run's time was up before the program
    was measured.  Such a trial does not count, and its start is removed from the database.  A
    CHECKED program gives the right result and was not timed: it is no trial.
    """

    OK = "ok"
    SLOW = "slow"
    LOWER_ERROR = "lower_error"
    BUILD_ERROR = "build_error"
    BUILD_TIMEOUT = "build_timeout"
    RUN_ERROR = "run_error"
    TIMEOUT = "timeout"
    CRASH = "crash"
    WRONG_RESULT = "wrong_result"
    REFUTED = "refuted"
    CHECKED = "checked"
    NOT_RECORDED = "not_recorded"
    CUT = "cut"


@dataclass(frozen=True)
class MeasureResult:
    """One measured candidate.

    Args:
        seconds: Seconds of one call, one number per sample (a sample may average several calls).
        reason: Why it is not OK, in one or more plain lines; empty when it is.
        build_s: Seconds from schedule to object code.
        run_s: Seconds the run worker spent on it, including checks.
        max_error: Largest difference from the reference, as a fraction of the largest
            reference value; 0 when nothing was compared.
        object_digest: Content digest of the object code that was timed; empty when none was.
    """

    kind: TrialKind
    seconds: tuple[float, ...] = ()
    reason: str = ""
    build_s: float = 0.0
    run_s: float = 0.0
    max_error: float = 0.0
    object_digest: str = ""

    @property
    def ok(self) -> bool:
        return self.kind is TrialKind.OK

    @property
    def median_s(self) -> float:
        """Median seconds of one call; infinite when it was never timed."""
        return statistics.median(self.seconds) if self.seconds else math.inf

    @property
    def known_s(self) -> float:
        """The median also of a program that was stopped early; infinite for failures."""
        return self.median_s if self.kind in (TrialKind.OK, TrialKind.SLOW) else math.inf

    @property
    def spread(self) -> float:
        """Interquartile range of the samples over their median; 0 for fewer than two samples."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / self.median_s

    def scaled(self, factor: float) -> MeasureResult:
        """The same result with all times multiplied by *factor*."""
        return replace(self, seconds=tuple(s * factor for s in self.seconds))


def out_of_time() -> MeasureResult:
    """The result of a candidate for which the deadline left no time."""
    return MeasureResult(TrialKind.CUT, reason="the run's time was up")
