"""A caller's request for a search, as one value that every step passes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path

from ansorpy.api.parts import Parts
from ansorpy.config import SEED, default_threads
from ansorpy.cost.saved import SavedModel
from ansorpy.errors import UsageError
from ansorpy.ir.task import Precision
from ansorpy.measure.workers import LOCAL
from ansorpy.rules.presets import Preset
from ansorpy.runtime.footprint import bytes_text
from ansorpy.search.events import Listener, silent
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget, Effort

__all__ = ["Request", "as_seed", "as_target", "require_memory"]


def _never() -> None:
    """The default of :attr:`Request.stop`: go on."""


@dataclass(frozen=True)
class Request:
    """How to search for programs.

    Args:
        effort: ``none`` measures nothing beyond checking the programs it returns.
        trials, trials_per_task, time_limit_s: Explicit limits; any of them replaces the effort's.
        threads: Threads the programs are tuned for.
        db: Database file; ``None`` keeps records for this call only.
        workers: Where programs are timed: ``local``, or a Ray cluster's address
            (:mod:`ansorpy.measure.workers`).
        parts: The search's replaceable parts.
        preset: The sketch rules; ``None`` takes the target's default.
        listener: Receives progress reports.
        stop: Called before each batch is measured; raises ``KeyboardInterrupt`` to end the search,
            keeping all earlier results.
    """

    effort: Effort = "quick"
    trials: int | None = None
    trials_per_task: int | None = None
    time_limit_s: float | None = None
    target: Target = field(default_factory=Target.host)
    threads: int = field(default_factory=default_threads)
    precision: Precision = "default"
    db: Path | None = None
    seed: int = field(default_factory=lambda: as_seed(None))
    workers: str = LOCAL
    parts: Parts = Parts()
    preset: Preset | None = None
    listener: Listener = silent
    stop: Callable[[], None] = _never

    def __post_init__(self) -> None:
        _require_whole("threads", self.threads, least=1)
        _require_whole("seed", self.seed, least=0)
        if isinstance(self.parts.model, SavedModel):
            self.parts.model.demand(self.target)

    def budget(self, *, network: bool) -> Budget | None:
        """The limits of measuring; ``None`` when nothing may be measured.

        Raises:
            UsageError: Measuring was requested, but the target's programs cannot be timed here.
            MissingDependency: The same for a CUDA target, where this machine has no GPU.
        """
        budget = Budget.of(
            self.effort,
            network=network,
            trials=self.trials,
            trials_per_task=self.trials_per_task,
            time_limit_s=self.time_limit_s,
        )
        if budget is not None and not self.can_time:
            self.target.require_device()
            raise UsageError(
                f"programs for {self.target.name} cannot be timed on this machine",
                hint="use effort none, which needs no timing, or workers that can time them",
            )
        return budget

    @property
    def can_time(self) -> bool:
        """False when the target's programs run neither here nor, as far as known, elsewhere."""
        return self.workers != LOCAL or self.target.runs_on_host()


def _require_whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, Integral) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {value!r}")


def as_target(target: Target | str | None) -> Target:
    """*target* itself, the one it names, or this machine."""
    if target is None:
        return Target.host()
    if isinstance(target, Target):
        return target
    if not isinstance(target, str):
        raise UsageError(f"{target!r} is not a target", hint="name one, or pass a Target")
    return Target.parse(target)


def as_seed(seed: int | None) -> int:
    """*seed*, or the one the environment gives, or 0."""
    return (SEED.get() or 0) if seed is None else seed


def require_memory(what: str, needed: int) -> None:
    """Refuse *what*, whose tensors take *needed* bytes, if this machine has less memory.

    Raises:
        UsageError: Its result could not be checked here, nor its loops searched in time.
    """
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise UsageError(
            f"{what} needs {bytes_text(needed)} for its tensors, this machine has "
            f"{bytes_text(there)}",
            hint="make its shapes smaller",
        )
