"""Progress of a tuning run: a live line on a terminal, occasional plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from ansorpy.measure.result import TrialKind
from ansorpy.search.events import Phase, Progress

if TYPE_CHECKING:
    from rich.live import Live

__all__ = ["ProgressDisplay", "progress_text"]

# Seconds between plain lines while nothing improves.
QUIET_S = 10.0


class ProgressDisplay:
    """A listener that shows best latency, trials, failures by kind and time left."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file or sys.stderr
        self._failures: dict[str, Mapping[TrialKind, int]] = {}
        self._best: dict[str, float | None] = {}
        self._printed_at = 0.0
        self._live: Live | None = None

    def __enter__(self) -> ProgressDisplay:
        if self._file.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._file, highlight=False)
            self._live = Live(console=console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Show one report."""
        improved = progress.task != "" and progress.best_s != self._best.get(progress.task)
        if progress.task:
            self._best[progress.task] = progress.best_s
            self._failures[progress.task] = progress.failures or {}
        line = progress_text(progress, self.failures)
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(line))
        elif improved or time.monotonic() - self._printed_at >= QUIET_S:
            self._printed_at = time.monotonic()
            print(line, file=self._file, flush=True)

    @property
    def failures(self) -> dict[TrialKind, int]:
        """Failed trials of all tasks by kind."""
        total: dict[TrialKind, int] = {}
        for counts in self._failures.values():
            for kind, count in counts.items():
                total[kind] = total.get(kind, 0) + count
        return total


def progress_text(progress: Progress, failures: Mapping[TrialKind, int]) -> str:
    """One line: trials, best total and best of the task, failures by kind, time left."""
    limit = "" if progress.trial_limit is None else f"/{progress.trial_limit}"
    if progress.phase is Phase.PICKED:
        return f"program {progress.total_trials}{limit} chosen: {progress.task}"
    parts = [f"trials {progress.total_trials}{limit}"]
    if progress.total_s is not None:
        parts.append(f"best {milliseconds(progress.total_s)}")
    if progress.task:
        best = "-" if progress.best_s is None else milliseconds(progress.best_s)
        parts.append(f"{progress.task}: {best}")
    if failures:
        counts = sorted(failures.items(), key=lambda item: -item[1])
        parts.append("failed " + ", ".join(f"{count} {kind.value}" for kind, count in counts))
    if progress.left_s is not None:
        left = max(0, round(progress.left_s))
        parts.append(f"{left // 60}:{left % 60:02d} left")
    return "  ".join(parts)


def milliseconds(seconds: float) -> str:
    """Format a latency in milliseconds, or in microseconds if below one."""
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
