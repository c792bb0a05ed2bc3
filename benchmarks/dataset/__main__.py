"""``python -m benchmarks.dataset``: record programs of a zoo of networks, and train on them.

The networks of the benchmarks, those of common exporters and random ones take turns, so that a
recording that was stopped has something of each.  What models are evaluated on is left out.  The
programs are added to those that are published for machines like this one.  A model is then trained
on all of them and takes the place of the one that ships; both rank the recorded spaces.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ansorpy.api.dataset import Sources, random_tasks
from ansorpy.api.request import Request
from ansorpy.api.train_model import train_model
from ansorpy.cli.exit_codes import exit_code
from ansorpy.cli.recording import record
from ansorpy.cost.pretrained import pretrained_for, shipped_file
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.program_dataset import ProgramDataset
from ansorpy.search.population import in_turns
from ansorpy.target import Target
from ansorpy.tasks.record import RecordOptions
from benchmarks.common.command import command_line
from benchmarks.dataset.zoo import exported, held_out, zoo
from benchmarks.spaces.rank import show_ranks

__all__ = ["main", "published_file"]


def published_file(family: str) -> Path:
    """The recorded programs that the model for machines of *family* is trained on."""
    return Path(__file__).parent / "recorded" / shipped_file(family).with_suffix(".npz").name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    p = command_line("dataset", __doc__)
    p.add_argument("-o", "--output", type=Path, help="only record, and to this file, which grows")
    p.add_argument("--random", type=int, default=2000, help="number of random networks")
    p.add_argument("--programs", type=int, default=64, help="programs of each task")
    p.add_argument("--threads", type=int, help="threads of the programs")
    p.add_argument("--time-limit", help="when recording stops: 30m, 2h")
    return exit_code(partial(_run, p.parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    request = Request.of(effort="none", threads=options.threads)
    random = random_tasks(options.random, request)
    found = record(
        options.output or published_file(request.target.family),
        _allowed(in_turns(zoo(request), exported(request), random)),
        request.target,
        RecordOptions(programs=options.programs),
        options.time_limit,
    )
    if options.output is None:
        _ship(found, request.target)
    return 0


def _allowed(sources: Sources) -> Iterator[tuple[str, Task]]:
    for source, task in sources:
        if structural_hash(task.static.dag) not in held_out():
            yield source, task


def _ship(dataset: ProgramDataset, target: Target) -> None:
    """Train the model for machines like *target*, which ships from now on."""
    trained, before = train_model(dataset, target), pretrained_for(target)
    show_ranks({**({"before": before()} if before else {}), "trained": trained.model()})
    trained.save(shipped_file(target.family))


if __name__ == "__main__":
    sys.exit(main())
