"""Find the records of a network from command-line options, and report which are missing."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from ansorpy.api.alternatives import fastest
from ansorpy.api.arguments import LookupArguments, SearchArguments, SizeArguments, demand_by_name
from ansorpy.api.evaluate.databases import demand_database
from ansorpy.api.project import Project, open_project
from ansorpy.api.request import Request
from ansorpy.constants import constant_text
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.options import declared, those
from ansorpy.size_bounds import bound_text
from ansorpy.size_ranges import SizeRange

__all__ = ["Lookup"]


class Lookup:
    """A network file, and the arguments that identify its tasks in the records."""

    def __init__(self, model: Path, **arguments: Unpack[LookupArguments]) -> None:
        demand_by_name(arguments)
        self.model = model
        self.arguments = arguments

    @cached_property
    def request(self) -> Request:
        """The request for programs from the records, without tuning.

        Raises:
            ForeignFile: There is no database with the given name.
        """
        named = self.arguments.get("db")
        if named is not None:
            demand_database(Path(named))
        return Request.of(effort="none", **those(SearchArguments, self.arguments))

    @cached_property
    def project(self) -> Project:
        """The network, whose task keys are those of the records."""
        return open_project(self.model, self.request, **those(SizeArguments, self.arguments))

    def command(self, verb: str, *options: str) -> str:
        """The command line that runs *verb* on the same tasks and records."""
        words = [word for argument in declared(LookupArguments)
                 for word in _words(argument.flag, self.arguments.get(argument.name),
                                    argument.option.default)]  # fmt: skip
        return shlex.join(["ansorpy", verb, str(self.model), *options, *words])

    def warn_of_predictions(self, tasks: Sequence[Task] | None = None) -> None:
        """Warn on stderr how many of *tasks* (default: the network's) have no tuned program.

        Predicted programs do not count, although they are recorded when they are checked.
        """
        tuned: dict[str, float] = {}
        if self.request.db.exists():
            with Database(self.request.db) as database:
                tuned = database.tuned()
        if tasks is None:
            tasks = fastest(self.project, lambda task: tuned.get(task.key)).tasks
        missing = sum(task.key not in tuned for task in tasks)
        if missing:
            print(
                f"warning: the programs of {missing} of {len(tasks)} tasks are predicted, not "
                f"tuned; to tune them, run: {self.command('tune')}",
                file=sys.stderr,
            )


def _words(flag: str, value: Any, default: object) -> Iterator[str]:
    """The words of an option with *value*; none if that is the *default*."""
    if value == default or value is None:
        return
    if not isinstance(value, dict):
        yield from (flag, str(value))
        return
    for name, size in value.items():
        if flag == "--const":
            yield from (flag, constant_text(name, size))
            continue
        if flag == "--bound":
            yield from (flag, bound_text(name, size))
            continue
        is_size = isinstance(size, int | str | SizeRange)
        yield from (flag, f"{name}={size if is_size else 'x'.join(map(str, size))}")
