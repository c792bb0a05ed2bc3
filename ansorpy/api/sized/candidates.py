"""Schedules found at a size of a definition, as candidates for its program for all sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from ansorpy.api.sized.task_group import TaskGroup
from ansorpy.api.tuner import Chosen, Tuner
from ansorpy.errors import ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import Role
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes, fixed
from ansorpy.ir.text.printer import text
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.rules.algorithms.base import definitions_for_all
from ansorpy.rules.presets import preset_for
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import History, State

__all__ = ["SizedCandidate", "candidates"]


@dataclass(frozen=True)
class SizedCandidate:
    """A schedule of *definition*, which computes the workload at all sizes."""

    definition: ComputeDAG
    history: History

    def state(self, sizes: Sizes) -> State:
        """The schedule where the dimensions in *sizes* have these sizes.

        Raises:
            ScheduleError: It does not apply there.
        """
        return State.replay(dag_at(self.definition, sizes), self.history)

    @property
    def key(self) -> tuple[int, str]:
        """Equal for equal candidates."""
        return id(self.definition), str(self.history)

    @property
    def applies(self) -> bool:
        """True if the schedule is legal for the definition at all sizes at once."""
        try:
            return bool(self.packing)
        except ScheduleError:
            return False

    @cached_property
    def packing(self) -> tuple[str, int]:
        """A text that is equal for candidates with the same packed constants, and their bytes."""
        bind = lower(self.state({})).bind
        if bind is None:
            return "", 0
        made = [param.buffer for param in bind.params if param.role is Role.OUTPUT]
        return text(bind), sum(fixed(buffer.bytes) for buffer in made)

    def sizes_inside(self) -> Iterator[SizedCandidate]:
        """The same with the loops over sizes inside the others of a parallel nest.

        A team divides a parallel nest into equal parts, but tiles beyond the axis are skipped: if
        the loops over sizes are the outer ones, the last part has less to do than the others.
        """
        state = self.state({})
        for stage in state.stages:
            mark = stage.parallel
            if mark is None or stage.attach is not None:
                continue
            loops = [it for it in stage.iters if it.name in mark.iters]
            order = sorted(loops, key=lambda it: not isinstance(it.extent, int))
            if order != loops:
                yield SizedCandidate(self.definition, state.reorder(stage, order).history)


def candidates(
    tuner: Tuner, group: TaskGroup, found: Iterable[tuple[Chosen, Sizes]]
) -> list[SizedCandidate]:
    """The schedules *found*, each at its sizes, that apply at all sizes.

    Each also comes with loops over sizes inside.
    """
    general = _General(tuner, group.dag)
    return [one for chosen, sizes in found for one in general.candidates(chosen.state, sizes)]


class _General:
    """The definitions of a workload that compute it at all sizes."""

    def __init__(self, tuner: Tuner, dag: ComputeDAG) -> None:
        request = tuner.request
        preset = request.preset or preset_for(request.target)
        self._rest = definitions_for_all(dag, preset.algorithms, request.target, request.precision)
        self._known: list[ComputeDAG] = []

    def candidates(self, state: State, sizes: Sizes) -> Iterator[SizedCandidate]:
        """The schedule *state*, found at *sizes*, for all sizes; none if it does not apply."""
        definition = self._of(state.definition, sizes)
        if definition is None:
            return
        candidate = SizedCandidate(definition, state.history)
        if candidate.applies:
            yield candidate
            yield from (other for other in candidate.sizes_inside() if other.applies)

    def _of(self, dag: ComputeDAG, sizes: Sizes) -> ComputeDAG | None:
        """The definition for all sizes that is *dag* at *sizes*; None if there is none."""
        wanted = structural_hash(dag)
        for definition in chain(self._known, self._others()):
            if structural_hash(dag_at(definition, sizes)) == wanted:
                return definition
        return None

    def _others(self) -> Iterator[ComputeDAG]:
        """Definitions that were not made yet, which takes a while."""
        for definition in self._rest:
            self._known.append(definition.dag)
            yield definition.dag
