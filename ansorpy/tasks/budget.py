"""Limits on how much a tuning run may measure; what each effort (none, quick, full) allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from ansorpy.errors import UsageError
from ansorpy.quantities import is_real, is_whole, seconds_of

__all__ = ["LARGEST_ROUND", "LONGEST_S", "Budget", "Effort"]

Effort = Literal["none", "quick", "full"]

_LIMIT_S: dict[str, tuple[float, float]] = {"quick": (30.0, 300.0), "full": (180.0, 1800.0)}
"""Seconds for a single operator and for a network."""

_PLATEAU: dict[str, int] = {"quick": 64, "full": 160}
"""Trials without a gain after which a task rests.

Measured on squeezenet in 300 s: most tasks gained nothing after 60 trials; one wasted 752 trials.
"""

LARGEST_ROUND = 32
LONGEST_S = 1e9
"""Longest time limit in seconds (30 years); an infinite one could not be divided among tasks."""


@dataclass(frozen=True)
class Budget:
    """Limits of a tuning run; a limit that is None does not apply.

    Args:
        trials: Programs measured in all, including those of earlier runs with the same records.
        trials_per_task: Programs measured for each task, counted likewise.
        time_limit_s: Wall-clock seconds of this run, at most ``LONGEST_S``.
        plateau: A task rests after this many consecutive trials without a noticeable gain, and at
            least as many as it spent before them; once all tasks rest, those far from their
            roofline continue while a time limit lasts.
    """

    trials: int | None = None
    trials_per_task: int | None = None
    time_limit_s: float | None = None
    plateau: int | None = None

    def __post_init__(self) -> None:
        for name in ("trials", "trials_per_task", "time_limit_s", "plateau"):
            value = getattr(self, name)
            said, is_time = name.removesuffix("_s"), name == "time_limit_s"  # as users give it
            is_kind: Callable[[object], bool] = is_real if is_time else is_whole
            if value is None:
                continue
            if not is_kind(value):
                words = "a" if is_time else "a whole"
                raise UsageError(f"{said} must be {words} number, got {value!r}")
            if not value > 0:  # nan is not
                raise UsageError(
                    f"{said} must be positive, got {value}",
                    hint='to measure nothing, use effort="none"',
                )
            if is_time and value > LONGEST_S:
                raise UsageError(
                    f"{said} must be at most {LONGEST_S:g} seconds, got {value}",
                    hint="for no time limit, limit the trials instead",
                )
            # A number of numpy's cannot be recorded.
            plain: Callable[[Any], float] = float if is_time else int
            object.__setattr__(self, name, plain(value))

    @staticmethod
    def of(
        effort: Effort,
        *,
        network: bool,
        trials: int | None = None,
        trials_per_task: int | None = None,
        time_limit: float | str | None = None,
    ) -> Budget | None:
        """The budget of an effort; explicit limits replace the preset.  None: measure nothing.

        *time_limit* is in seconds, or a text like ``10m``.

        Raises:
            UsageError: The effort is unknown, or a limit is not positive.
        """
        if effort not in ("none", *_LIMIT_S):
            raise UsageError(f'unknown effort "{effort}"', hint="use none, quick or full")
        time_limit_s = None if time_limit is None else seconds_of(time_limit)
        if trials is None and trials_per_task is None and time_limit_s is None:
            if effort == "none":
                return None
            return Budget(time_limit_s=_LIMIT_S[effort][network], plateau=_PLATEAU[effort])
        return Budget(trials, trials_per_task, time_limit_s)

    def divided(self, searches: int) -> Budget:
        """The budget of each of several *searches* that together have this one."""
        return replace(
            self,
            trials=self.trials and max(self.trials // searches, 1),
            time_limit_s=self.time_limit_s and self.time_limit_s / searches,
        )

    def round_size(self, tasks: int) -> int:
        """Maximum number of trials in one round of one task: about a quarter of its share.

        A share of two gives a round of two: a round of one has no room for the default schedule.
        Differs: TVM measures 64 per round, which leaves no second round in small budgets.
        """
        shares = [
            limit
            for limit in (self.trials_per_task, self.trials and self.trials // max(tasks, 1))
            if limit is not None
        ]
        share = min(shares, default=4 * LARGEST_ROUND)
        return min(max(share // 4, min(share, 2), 1), LARGEST_ROUND)
