"""Find the records of a network from command-line options, and report which are missing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack, cast

from ansorpy.api.alternatives import fastest
from ansorpy.api.arguments import LookupArguments, SearchArguments, SizeArguments, demand_by_name
from ansorpy.api.display.shown import say
from ansorpy.api.evaluate.databases import demand_database
from ansorpy.api.project import Project, open_project
from ansorpy.api.request import Request
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.options import Argument, declared, those
from ansorpy.quantities import path_of
from ansorpy.target import Target

__all__ = ["Lookup"]


class Lookup:
    """A network file, and the arguments that identify its tasks in the records.

    Args:
        plugins: Files or modules with operators that the network has.
        source: What the user asked for, which commands repeat; None if that is this.
    """

    def __init__(
        self,
        model: Path,
        *,
        plugins: Sequence[str | Path] = (),
        source: Lookup | None = None,
        **arguments: Unpack[LookupArguments],
    ) -> None:
        demand_by_name(arguments)
        self.model = model
        self.plugins = plugins
        self.arguments = arguments
        self._source = source

    @cached_property
    def request(self) -> Request:
        """The request for programs from the records, without tuning.

        Raises:
            ForeignFile: There is no database with the given name.
        """
        named = self.arguments.get("db")
        if named is not None:
            demand_database(path_of(named, "a database"))
        return Request.of(effort="none", **those(SearchArguments, self.arguments))

    @cached_property
    def project(self) -> Project:
        """The network, whose task keys are those of the records."""
        return open_project(self.model, self.request, **those(SizeArguments, self.arguments))

    def replaced(
        self,
        model: Path | None = None,
        *,
        source: Lookup | None = None,
        **changes: Unpack[LookupArguments],
    ) -> Lookup:
        """The same, of *model* and for *source* if they are given, with *changes* of arguments."""
        arguments = cast(LookupArguments, {**self.arguments, **changes})
        return Lookup(
            model or self.model, plugins=self.plugins, source=source or self._source, **arguments
        )

    def command(self, verb: str, *options: str) -> str:
        """The command line that runs *verb* on the same tasks and records."""
        source = self._source or self
        loaded = [word for plugin in source.plugins for word in ("--plugin", str(plugin))]
        words = [*options, *source.options(), *loaded]
        return shlex.join(["ansorpy", verb, str(source.model), *words])

    def options(self, *names: str) -> list[str]:
        """The words of the arguments called *names*, or of all if there are no *names*."""
        words: list[str] = []
        for argument in declared(LookupArguments):
            if not names or argument.name in names:
                words += _words(argument, self.arguments.get(argument.name))
        return words

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
            elsewhere = " on a machine that can time them, or with --workers"
            where = "" if self.request.can_time else elsewhere
            say(
                f"warning: the programs of {missing} of {len(tasks)} tasks are predicted, not "
                f"tuned; to tune them, run{where}: {self.command('tune')}"
            )


def _words(argument: Argument, value: Any) -> Iterator[str]:
    """The words of *argument* with *value*; none if that is its default."""
    option = argument.option
    if value == option.default or value is None:
        return
    if not isinstance(value, Mapping):
        yield from (argument.flag, value.name if isinstance(value, Target) else str(value))
        return
    for name, one in value.items():
        yield from (argument.flag, f"{name}={option.text(one, name)}")
