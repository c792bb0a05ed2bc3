"""Programs as JSON texts: the definition, and the steps that schedule it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.text.serialize import dag_from_json, dag_to_json
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json

__all__ = ["state_from_json", "states_to_json"]


def states_to_json(states: Iterable[State]) -> Iterator[tuple[str, str]]:
    """The definition and the steps of each of *states*, as texts."""
    written: dict[ComputeDAG, str] = {}
    for state in states:
        if state.definition not in written:
            written[state.definition] = dag_to_json(state.definition)
        yield written[state.definition], steps_to_json(state.history)


def state_from_json(definition: str | bytes, steps: str | bytes) -> State:
    """The program that :func:`states_to_json` wrote as two texts.

    Programs that are read one after another share the definition if its text is the same, since
    analyses are cached by it.

    Raises:
        ForeignFile: A text is something else.
        ScheduleError: The steps do not apply to the definition.
    """
    return State.replay(_definition(definition), steps_from_json(steps))


@lru_cache(maxsize=8)
def _definition(text: str | bytes) -> ComputeDAG:
    """The definition in *text*: a task has a few, which its programs have in turns."""
    return dag_from_json(text)
