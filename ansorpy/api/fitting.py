"""Programs whose constants together stay in bounds: a little slower where the fastest take most.

Winograd's transformed weights take up to four times the given ones in two dimensions and more in
three, and each task is searched alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ansorpy.api.project import Project, memory_hint
from ansorpy.api.session import Chosen, Session
from ansorpy.errors import NoValidProgram, UsageError
from ansorpy.ir.loops import Role
from ansorpy.measure.records import Record
from ansorpy.schedule.lower import lower
from ansorpy.schedule.state import State
from ansorpy.tasks.predict import predicted_seconds

__all__ = ["GROWTH", "SLACK", "Way", "choose_within", "fastest_within", "most_constant_bytes"]

GROWTH = 2
"""How many times the given constants those that the code reads may take ..."""
SLACK = 32 << 20
"""... and bytes beyond that: transformed weights of small networks are no burden."""


@dataclass(frozen=True)
class Way:
    """One program of a task: seconds of a call, bytes of its constants, and how it is got."""

    seconds: float
    bytes: int
    make: Callable[[], Chosen]


def most_constant_bytes(project: Project) -> int:
    """Bytes that the constants of the compiled *project* may take."""
    most = GROWTH * project.constant_bytes + SLACK
    if project.memory is None:
        return most
    return min(most, project.memory - project.network.arena.bytes)


def choose_within(session: Session, project: Project) -> list[Chosen]:
    """The best program of each task of *project*, within :func:`most_constant_bytes`.

    Where the best take more, other definitions are taken for the tasks that lose least time by it
    for each byte.

    Raises:
        UsageError: No programs found fit the memory that was allowed.
    """
    chosen = session.choose(project.tasks)
    calls = [project.weights[task.key] for task in project.tasks]
    sizes = [_packed_bytes(program) for program in chosen]
    most = most_constant_bytes(project)
    if sum(n * size for n, size in zip(calls, sizes, strict=True)) <= most:
        return chosen
    ways = [
        [_way_of(program, size), *_other_ways(session, program)]
        for program, size in zip(chosen, sizes, strict=True)
    ]
    taken = fastest_within(ways, calls, most)
    total = sum(n * of[at].bytes for n, of, at in zip(calls, ways, taken, strict=True))
    if project.memory is not None and total > most:
        needs, allowed = (f"{b / 2**20:.1f} MiB" for b in (total, most))
        raise UsageError(
            f"the smallest programs found read {needs} of packed constants, more than the "
            f"{allowed} that the memory allowed leaves beside the arena",
            hint=memory_hint(project.memory + total - most),
        )
    return [of[at].make() for of, at in zip(ways, taken, strict=True)]


def fastest_within(ways: Sequence[Sequence[Way]], calls: Sequence[int], most: int) -> list[int]:
    """The number of the way each task takes, so that all calls' constants take *most* bytes.

    Begins with the fastest ways, and gives up the least time for each byte until they fit; ends
    with the smallest when nothing fits.
    """
    taken = [int(np.argmin([way.seconds for way in of])) for of in ways]
    total = sum(n * of[at].bytes for n, of, at in zip(calls, ways, taken, strict=True))
    while total > most:
        swaps = [
            ((way.seconds - now.seconds) / (now.bytes - way.bytes), task, at)
            for task, of in enumerate(ways)
            for at, way in enumerate(of)
            if way.bytes < (now := of[taken[task]]).bytes
        ]
        if not swaps:
            break
        _, task, at = min(swaps)
        total -= calls[task] * (ways[task][taken[task]].bytes - ways[task][at].bytes)
        taken[task] = at
    return taken


def _packed_bytes(chosen: Chosen) -> int:
    specs = [spec for spec in chosen.built.run_params if spec.role is Role.CONSTANT]
    return sum(math.prod(spec.shape) * spec.dtype.bytes for spec in specs)


def _way_of(chosen: Chosen, size: int) -> Way:
    seconds = chosen.median_s
    if seconds is None:
        seconds = predicted_seconds(chosen.task, chosen.state)
    return Way(seconds, size, lambda: chosen)


def _other_ways(session: Session, chosen: Chosen) -> Iterator[Way]:
    """The fastest recorded program of each other definition; the task's own, predicted else."""
    task = chosen.task
    fastest: dict[str, Record] = {}
    for record in session.database.fastest(task.key, -1):
        fastest.setdefault(record.definition, record)
    known = chosen.state.base
    own = session.database.identify(task.dag)
    for definition, record in fastest.items():
        state = record.state(session.database.definition(definition))
        if definition != session.database.identify(known) and record.median_s is not None:
            made = partial(session.recorded, task, record)
            yield Way(record.median_s, _lowered_bytes(state), made)
    if own not in fastest and own != session.database.identify(known):
        try:
            direct = session.predicted_directly(task)
        except NoValidProgram:
            return  # one way less; the programs there are stay
        yield _way_of(direct, _packed_bytes(direct))


def _lowered_bytes(state: State) -> int:
    params = [param for param in lower(state).run.params if param.role is Role.CONSTANT]
    return sum(math.prod(p.buffer.shape) * p.buffer.dtype.bytes for p in params)
