"""Choose programs within a memory bound, at the cost of a little speed where necessary.

Each task is searched separately, and Winograd's transformed weights can take four times as much
memory as the original ones in two dimensions, and more in three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from ansorpy.api.project import Project, memory_hint
from ansorpy.api.tuner import Chosen, Tuner
from ansorpy.codegen.backends import codegen_of
from ansorpy.errors import NoValidProgram, UsageError
from ansorpy.ir.extents import most
from ansorpy.ir.loops import Program, Role
from ansorpy.ir.prove import Proof
from ansorpy.ir.task import Task
from ansorpy.runtime.footprint import bytes_text
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.search.history import Best
from ansorpy.tasks.predict import predicted_seconds

__all__ = ["GROWTH", "SLACK", "ProgramOption", "Room", "choose_within", "fastest_within", "room_of"]

GROWTH = 2
"""The constants that the code reads may take this many times the bytes of the original ones ..."""
SLACK = 32 << 20
"""... and this many bytes more: transformed weights of small networks do not matter."""


@dataclass(frozen=True)
class ProgramOption:
    """One program of a task: seconds of all its calls in a run, and how to build it.

    ``bytes``: size of the constants of all calls.
    ``workspace``: bytes of scratch memory, which all tasks share.
    """

    seconds: float
    bytes: int
    make: Callable[[], Chosen]
    workspace: int = 0


@dataclass(frozen=True)
class Room:
    """Limits on the bytes of the constants, and of constants plus workspace; None for no bound."""

    constants: int
    together: int | None = None

    def holds(self, constants: int, workspace: int) -> bool:
        fits = self.together is None or constants + workspace <= self.together
        return fits and constants <= self.constants


def room_of(project: Project) -> Room:
    """The memory that remains for constants and workspace of *project*, next to the arena."""
    most = GROWTH * project.constant_bytes + SLACK
    if project.memory is None:
        return Room(most)
    left = project.memory - project.network.arena.bytes
    return Room(min(most, left), left)


def choose_within(tuner: Tuner, project: Project) -> list[Chosen]:
    """Choose the best program of each task of *project*, within its memory (:func:`room_of`).

    If the best programs take too much, some tasks use another definition: those that lose the
    least time per byte saved.  One workspace counts, as for a library; calls that overlap on a GPU
    in this process have more.

    Raises:
        UsageError: No known programs fit the allowed memory.
    """
    chosen = tuner.choose(project.tasks)
    room = room_of(project)
    constants = sum(round(project.packs[p.task.key] * _packed_bytes(p)) for p in chosen)
    if room.holds(constants, max(map(_workspace, chosen), default=0)):
        return chosen
    options = [
        [_in_run(project, program.task, option) for option in _options_of(tuner, program)]
        for program in chosen
    ]
    taken = fastest_within(options, room)
    constants, workspace = _taken_bytes([of[at] for of, at in zip(options, taken, strict=True)])
    left = room.constants if room.together is None else room.together
    if project.memory is not None and not room.holds(constants, workspace):
        total = constants + workspace
        raise UsageError(
            f"the smallest programs found take {bytes_text(total)} of packed constants and "
            f"workspace, more than the {bytes_text(left)} that the memory limit leaves next to "
            "the arena",
            hint=memory_hint(project.memory + total - left),
        )
    return [of[at].make() for of, at in zip(options, taken, strict=True)]


def fastest_within(options: Sequence[Sequence[ProgramOption]], room: Room) -> list[int]:
    """Choose an option for each task, by number, so that all together fit into *room*.

    The search starts from the fastest options and gives up the least time per byte until they fit;
    if nothing fits, it returns the smallest options.  It tries every possible size of the
    workspace, because each leaves a different number of bytes for the constants.
    """
    if room.together is None:
        return _within(options, room.constants, inf)
    caps = sorted({option.workspace for of in options for option in of})
    # Below the largest of the tasks' smallest workspaces, some task has no option left.
    least = max(min(option.workspace for option in of) for of in options)
    found = [
        _within(options, min(room.constants, room.together - cap), cap)
        for cap in caps if cap >= least
    ]  # fmt: skip

    def rank(taken: list[int]) -> tuple[bool, float]:
        chosen = [of[at] for of, at in zip(options, taken, strict=True)]
        constants, workspace = _taken_bytes(chosen)
        if not room.holds(constants, workspace):
            return True, constants + workspace
        return False, sum(option.seconds for option in chosen)

    return min(found, key=rank)


def _taken_bytes(chosen: Sequence[ProgramOption]) -> tuple[int, int]:
    """Bytes of all constants, and of the workspace that all tasks share."""
    constants = sum(option.bytes for option in chosen)
    return constants, max((option.workspace for option in chosen), default=0)


def _within(options: Sequence[Sequence[ProgramOption]], most: int, cap: float) -> list[int]:
    """Choose options with workspaces up to *cap* and at most *most* bytes of constants in all."""
    usable = [[at for at, option in enumerate(of) if option.workspace <= cap] for of in options]
    taken = [
        min(among, key=[option.seconds for option in of].__getitem__)
        for of, among in zip(options, usable, strict=True)
    ]
    total = sum(of[at].bytes for of, at in zip(options, taken, strict=True))
    while total > most:
        swaps = [
            ((of[at].seconds - now.seconds) / (now.bytes - of[at].bytes), task, at)
            for task, of in enumerate(options)
            for at in usable[task]
            if of[at].bytes < (now := of[taken[task]]).bytes
        ]
        if not swaps:
            break
        _, task, at = min(swaps)
        total -= options[task][taken[task]].bytes - options[task][at].bytes
        taken[task] = at
    return taken


def _in_run(project: Project, task: Task, option: ProgramOption) -> ProgramOption:
    """Scale *option*, which describes one call of *task*, to all its calls in *project*."""
    calls, packs = project.weights[task.key], project.packs[task.key]
    return replace(option, seconds=calls * option.seconds, bytes=round(packs * option.bytes))


def _packed_bytes(chosen: Chosen) -> int:
    specs = [spec for spec in chosen.built.run_params if spec.role is Role.CONSTANT]
    return sum(math.prod(spec.shape) * spec.dtype.bytes for spec in specs)


def _workspace(chosen: Chosen) -> int:
    return most(chosen.built.run.workspace_bytes(chosen.task.threads))


def _option_of(chosen: Chosen) -> ProgramOption:
    seconds = _seconds(chosen.task, chosen.state, chosen.median_s)
    return ProgramOption(seconds, _packed_bytes(chosen), lambda: chosen, _workspace(chosen))


def _seconds(task: Task, state: State, timed_s: float | None) -> float:
    return predicted_seconds(task, state) if timed_s is None else timed_s


def _options_of(tuner: Tuner, chosen: Chosen) -> Iterator[ProgramOption]:
    """Yield the program *chosen*, then the fastest recorded program of each other definition.

    Those that were only checked count where none was timed.  Refuted programs are passed over.
    If the task's own definition has no record, its predicted program is included.
    """
    yield _option_of(chosen)
    task = chosen.task
    database = tuner.database
    fastest: dict[str, tuple[Best, Proof]] = {}
    for record in (*database.fastest(task.key, -1), *database.checked(task.key)):
        state = None if record.definition in fastest else database.state(record)
        if state is not None and not (proof := tuner.proof(task, state)).refuted:
            fastest[record.definition] = Best(state, record.result), proof
    taken = database.definitions.identify(chosen.state.definition)
    own = database.definitions.identify(task.dag)
    for definition, (best, proof) in fastest.items():
        if definition != taken:
            program = lower(best.state).run
            yield ProgramOption(
                _seconds(task, best.state, best.timed_s),
                _constant_bytes(program),
                partial(tuner.assembled, task, best, proof),
                _workspace_bytes(program, task),
            )
    if own not in fastest and own != taken:
        try:
            direct = tuner.predicted_directly(task)
        except NoValidProgram:
            return  # there is one option less to choose from
        yield _option_of(direct)


def _constant_bytes(program: Program) -> int:
    params = [param for param in program.params if param.role is Role.CONSTANT]
    return sum(math.prod(p.buffer.shape) * p.buffer.dtype.bytes for p in params)


def _workspace_bytes(program: Program, task: Task) -> int:
    return codegen_of(task.target).workspace_bytes(program, task.target, task.threads)
