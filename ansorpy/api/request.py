"""A caller's request for a search, as one value that is passed to every step."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack, cast, get_args

from ansorpy.api.arguments import LimitArguments, PartArguments, SearchArguments
from ansorpy.api.parts import Parts
from ansorpy.config import available_cores, database_or_default, seed_or_default
from ansorpy.cost.saved import SavedModel
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.ir.task import Precision
from ansorpy.measure.machines import LOCAL
from ansorpy.options import completed, those
from ansorpy.quantities import bytes_text
from ansorpy.rules.presets import Preset
from ansorpy.search.events import Event, silent
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget

__all__ = ["Request", "as_target", "require_memory"]


_LOG = logging.getLogger(__name__)
_MOST = (1 << 63) - 1
"""The largest number that a database holds."""


def _never() -> None:
    """The default of :attr:`Request.stop`, which never stops the search."""


@dataclass(frozen=True)
class Request:
    """How to search for programs: the caller's arguments, with names and defaults resolved.

    Args:
        budget: The limits of measuring; ``None`` if nothing may be measured.
        db: The database, which need not exist.
        parts: The replaceable parts of the search.
        preset: The sketch rules; ``None``: the target's default.
        listener: Receives events in this thread; must return quickly.
        stop: Called before each batch is measured; raises ``KeyboardInterrupt`` to end the search,
            keeping all earlier results.
        is_quiet: Whether the default database is used without a word.
    """

    budget: Budget | None
    target: Target
    threads: int
    precision: Precision
    parts: Parts
    db: Path
    workers: str
    seed: int
    preset: Preset | None = None
    listener: Callable[[Event], None] = silent
    stop: Callable[[], None] = _never
    is_quiet: bool = False

    @staticmethod
    def of(
        *,
        network: bool = True,
        listener: Callable[[Event], None] = silent,
        is_quiet: bool = False,
        **arguments: Unpack[SearchArguments],
    ) -> Request:
        """The request for *arguments*, for a *network* or for a single operator.

        Raises:
            UsageError: An argument is unknown or has a wrong value, or measuring was requested for
                a target whose programs cannot be timed here.
            MissingDependency: Measuring was requested for a CUDA target, but there is no GPU here.
        """
        given = completed(SearchArguments, arguments)
        target = as_target(given["target"])
        threads = target.threads(given["threads"])
        if given["workers"] == LOCAL and target.runs_on_host():
            _warn_of_more_threads_than_cores(threads)
        return Request(
            budget=Budget.of(network=network, **those(LimitArguments, given)),
            target=target,
            threads=threads,
            precision=_precision(given["precision"]),
            parts=Parts(**those(PartArguments, given)),
            db=database_or_default(given["db"]),
            workers=given["workers"],
            seed=seed_or_default(given["seed"]),
            listener=listener,
            is_quiet=is_quiet,
        )

    def __post_init__(self) -> None:
        if self.seed > _MOST:
            raise UsageError(f"seed must be at most {_MOST}, got {self.seed}")
        if not isinstance(self.workers, str):
            raise UsageError(
                f"{self.workers!r} is not an address of workers", hint="name one, such as local"
            )
        if isinstance(self.parts.model, SavedModel):
            self.parts.model.demand(self.target)
        if self.budget is not None and not self.can_time:
            self.target.require_device()
            raise UsageError(
                f"programs for {self.target.name} cannot be timed on this machine",
                hint="use effort none, which needs no timing, or workers that can time them",
            )

    @property
    def can_time(self) -> bool:
        """Whether the target's programs can run here, or possibly on other workers."""
        return self.workers != LOCAL or self.target.runs_on_host()


def _warn_of_more_threads_than_cores(threads: int) -> None:
    cores = available_cores()
    if threads > cores:
        _LOG.warning("%d threads will share the %d cores that this process may use", threads, cores)


def _precision(given: str) -> Precision:
    known = get_args(Precision)
    if given not in known:
        raise UsageError(f'unknown precision "{given}"', hint=f"use one of {', '.join(known)}")
    return cast(Precision, given)


def as_target(target: Target | str | None) -> Target:
    """*target* itself, the target that it names, or this machine if it is None."""
    if target is None:
        return Target.host()
    if isinstance(target, Target):
        return target
    if not isinstance(target, str):
        raise UsageError(f"{target!r} is not a target", hint="name one, or pass a Target")
    return Target.parse(target)


def require_memory(what: str, needed: int) -> None:
    """Refuse *what*, whose tensors take *needed* bytes, if this machine has less memory.

    Raises:
        MissingDependency: The tensors do not fit, so results could not be checked here.
    """
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise MissingDependency(
            f"{what} needs {bytes_text(needed)} for its tensors, but this machine has "
            f"{bytes_text(there)}",
            hint="make its shapes smaller",
        )
