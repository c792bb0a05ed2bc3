"""``ansorpy dataset``: record programs as data for cost models, train models on it, compare them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ansorpy.cli.options import Quiet, Seed

if TYPE_CHECKING:
    from ansorpy.api.dataset import RecordProgress

__all__ = ["dataset"]


class Action(StrEnum):
    """What ``ansorpy dataset`` does."""

    record = "record"


def dataset(
    action: Annotated[Action, typer.Argument(metavar="record|train|eval", help="What to do.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="record: .onnx files; else datasets."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="record: the dataset, which grows; train: the model."),
    ] = None,
    random: Annotated[
        int, typer.Option("--random", min=0, help="record: random networks after the given ones.")
    ] = 0,
    programs: Annotated[int, typer.Option(min=4, help="record: programs of each task.")] = 64,
    time_limit: Annotated[
        str | None, typer.Option(metavar="30m", help="record: when to stop.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="record: threads of the programs.")
    ] = None,
    target: Annotated[str, typer.Option(help="The machine; default: host.")] = "host",
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Record measured programs of networks and of random operators as data for cost models."""
    _record(files or [], output, random, programs, time_limit, threads, target, seed, quiet)


def _record(
    networks: list[Path], output: Path | None, random: int, programs: int, time_limit: str | None,
    threads: int | None, target: str, seed: int, quiet: bool,
) -> None:  # fmt: skip
    from itertools import chain
    from math import inf

    from ansorpy.api.dataset import network_tasks, random_tasks, record_dataset
    from ansorpy.api.request import Request
    from ansorpy.errors import UsageError
    from ansorpy.quantities import seconds_of
    from ansorpy.tasks.record import RecordOptions

    if output is None:
        raise UsageError("a recording needs a file", hint="write: ansorpy dataset record -o d.npz")
    if not networks and not random:
        raise UsageError(
            "nothing to record", hint="name .onnx files, or random networks: --random 100"
        )
    request = Request.of(effort="none", target=target, threads=threads, seed=seed)
    found = record_dataset(
        output,
        chain(network_tasks(networks, request), random_tasks(random, request)),
        request.target,
        RecordOptions(programs=programs, seed=seed),
        time_limit_s=inf if time_limit is None else seconds_of(time_limit),
        listener=(lambda _: None) if quiet else _say,
    )
    print(f"{output}: {len(found)} programs of {len(found.tasks)} tasks")


def _say(progress: RecordProgress) -> None:
    """Print one line for each task."""
    ended = f"nothing: {progress.reason}" if progress.reason else f"{progress.rate:.1f} programs/s"
    print(
        f"{progress.tasks} tasks, {progress.programs} programs; "
        f"{progress.source}: {progress.task.name}: {ended}",
        flush=True,
    )
