"""``python -m benchmarks.dataset -o FILE``: record programs of a zoo of networks.

The networks of the benchmarks, those of common exporters and random ones take turns, so that a
recording that was stopped has something of each.  What models are evaluated on is left out.  The
recording goes on when the command is run again.  ``ansorpy dataset train FILE`` then trains a model
on it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path

from ansorpy.api.dataset import Sources, random_tasks, record_dataset
from ansorpy.api.request import Request
from ansorpy.cli.exit_codes import exit_code
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.quantities import seconds_of
from ansorpy.search.population import in_turns
from ansorpy.tasks.record import RecordOptions
from benchmarks.common.command import command_line
from benchmarks.dataset.zoo import exported, held_out, zoo

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    p = command_line("dataset", __doc__)
    p.add_argument("-o", "--output", type=Path, required=True, help="the dataset, which grows")
    p.add_argument("--random", type=int, default=2000, help="number of random networks")
    p.add_argument("--programs", type=int, default=64, help="programs of each task")
    p.add_argument("--threads", type=int, help="threads of the programs")
    p.add_argument("--time-limit", help="when to stop: 30m, 2h")
    options = p.parse_args(arguments)
    return exit_code(partial(_record, options))


def _record(options: argparse.Namespace) -> int:
    request = Request.of(effort="none", threads=options.threads)
    random = random_tasks(options.random, request)
    found = record_dataset(
        options.output,
        _allowed(in_turns(zoo(request), exported(request), random)),
        request.target,
        RecordOptions(programs=options.programs),
        time_limit_s=inf if options.time_limit is None else seconds_of(options.time_limit),
        listener=partial(print, flush=True),
    )
    print(f"{options.output}: {len(found)} programs of {len(found.tasks)} tasks")
    return 0


def _allowed(sources: Sources) -> Iterator[tuple[str, Task]]:
    for source, task in sources:
        if structural_hash(task.static.dag) not in held_out():
            yield source, task


if __name__ == "__main__":
    sys.exit(main())
