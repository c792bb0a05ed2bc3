"""A network and its records: the options that lead to them, and what the records lack."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ansorpy.cli.options import Precision

if TYPE_CHECKING:
    from ansorpy.api.project import Project
    from ansorpy.api.request import Request
    from ansorpy.ir.task import Task

__all__ = ["Lookup"]


@dataclass(frozen=True)
class Lookup:
    """A network file and the options that decide which records are of its tasks.

    ``db`` is an existing database, or None when there is none.
    """

    model: Path
    db: Path | None = None
    target: str = "host"
    threads: int | None = None
    precision: Precision = Precision.default
    dim: Sequence[str] | None = None
    shape: Sequence[str] | None = None

    @cached_property
    def request(self) -> Request:
        """The request for programs from the records, without tuning."""
        from ansorpy.cli.searching import make_request

        return make_request(
            db=self.db, target=self.target, threads=self.threads, precision=self.precision
        )

    @cached_property
    def project(self) -> Project:
        """The network, whose tasks have the keys of the records."""
        from ansorpy.cli.searching import project_of

        return project_of(self.model, self.request, self.shape, self.dim)

    def command(self, verb: str, *options: str) -> str:
        """The command line of *verb* for the same tasks and records."""
        words = ["ansorpy", verb, str(self.model), *options]
        words += [] if self.db is None else ["--db", str(self.db)]
        words += [] if self.target == "host" else ["--target", self.target]
        words += [] if self.threads is None else ["--threads", str(self.threads)]
        words += [] if self.precision is Precision.default else ["--precision", self.precision]
        for option, values in (("--dim", self.dim), ("--shape", self.shape)):
            words += [word for value in values or () for word in (option, value)]
        return shlex.join(words)

    def warn_of_predictions(self, tasks: Sequence[Task] | None = None) -> None:
        """Say on stderr how many of *tasks* (default: the network's) no search found a program for.

        Predicted programs are recorded when they are checked, and do not count.
        """
        from ansorpy.api.deciding import fastest
        from ansorpy.measure.database import Database

        tuned: dict[str, float] = {}
        if self.db is not None:
            with Database(self.db) as database:
                tuned = database.tuned()
        if tasks is None:
            tasks = fastest(self.project, lambda task: tuned.get(task.key)).tasks
        missing = sum(task.key not in tuned for task in tasks)
        if missing:
            print(
                f"warning: the programs of {missing} of {len(tasks)} tasks are predicted, not "
                f"tuned; to tune them: {self.command('tune')}",
                file=sys.stderr,
            )
