"""Choose programs for many tasks without measuring, in several processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TypeAlias

from ansorpy.config import available_cores
from ansorpy.cost.protocol import CostModel
from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import dag_to_json
from ansorpy.measure.proofs.prover import LIMIT_S
from ansorpy.measure.workers.pool import ask_all
from ansorpy.measure.workers.supervisor import Failure, Reply, Worker
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import Preset, preset_for
from ansorpy.schedule.state import State
from ansorpy.search.strategies.evolution import PredictOptions
from ansorpy.tasks.predict import predicted_best
from ansorpy.tasks.predict_build import Made, Making, make
from ansorpy.tasks.predict_handlers import (
    finish_message,
    finished,
    predict_message,
    predicted,
)

__all__ = ["predicted_of_all"]

_TASKS_A_WORKER = 4
"""Starting a worker costs about as much as predicting two tasks."""

_TIMEOUT_S = 600.0

Predicted: TypeAlias = tuple[int, list[State], Made]
"""A task's number, its programs, and what was made of the first."""


def predicted_of_all(
    tasks: Sequence[Task],
    *,
    preset: Preset | None = None,
    model: CostModel | None = None,
    options: PredictOptions | None = None,
    processes: int | None = None,
    making: Making = Making.NOTHING,
    known: Mapping[int, Sequence[State]] | None = None,
) -> Iterator[Predicted]:
    """Yield each task's number with its programs, the one predicted fastest first.

    The programs are those of :func:`~ansorpy.tasks.predict.predicted_best`, whichever process
    predicts them; tasks come in the order they finish.  Workers prove and check programs whose
    proofs may take long after all others, and are stopped if they do.

    Args:
        preset: Rules; if given, all predictions are made in this process; default: the target's.
        model: Cost model; if given, likewise; default: as the options say.
        making: What to make of the first program of each task.
        known: Programs of some tasks, by number, which are not predicted again.
        processes: Number of processes; default: as many as pay off, at most one per core.

    Raises:
        AnsorpyError: A worker cannot predict programs of a task.
    """
    chosen, given = options or PredictOptions(), known or {}
    many = processes or min(available_cores(), len(tasks) // _TASKS_A_WORKER)
    if many < 2 or preset is not None or model is not None:
        for number, task in enumerate(tasks):
            states = list(given.get(number, ()))
            if not states:
                source = SketchSampler(task, preset)
                states += predicted_best(task, source, model=model, options=chosen)
            yield number, states, make(task, states[0], making, chosen.seed)
        return
    with ExitStack() as stack:
        workers = [Worker("ansorpy.tasks.predict_handlers") for _ in range(many)]
        for worker in workers:
            stack.callback(worker.close)
        unproved: list[Predicted] = []
        for found in _predicted(workers, tasks, chosen, making, given):
            if found[2].built is not None and found[2].proof is None:
                unproved.append(found)
            else:
                yield found
        yield from _finished(workers, tasks, unproved, making, chosen.seed)


def _predicted(
    workers: Sequence[Worker],
    tasks: Sequence[Task],
    options: PredictOptions,
    making: Making,
    known: Mapping[int, Sequence[State]],
) -> Iterator[Predicted]:
    """The programs of *tasks*; one whose making fails is left out, unless it is alone.

    Long definitions come first: they take longest, and no process should end long after others.
    """
    asked = sorted(range(len(tasks)), key=lambda n: -len(dag_to_json(tasks[n].dag)))
    for this, first in ((making, 0), (Making.NOTHING, 1)):
        messages = [
            predict_message(
                tasks[n], preset_for(tasks[n].target).name, options, this, known.get(n, ())
            )
            for n in asked
        ]
        lost = []
        for at, outcome in ask_all(workers, messages, _TIMEOUT_S):
            failed = isinstance(outcome, Failure) or outcome.kind == "error"
            if failed and this is not Making.NOTHING:
                lost.append(asked[at])
            else:
                states, made = _read(tasks[asked[at]], outcome)
                yield asked[at], states[first:] or states, made
        asked = lost


def _finished(
    workers: Sequence[Worker],
    tasks: Sequence[Task],
    unproved: Sequence[Predicted],
    making: Making,
    seed: int,
) -> Iterator[Predicted]:
    """*unproved* programs, proved and checked where that does not take too long."""
    messages = [
        finish_message(tasks[number], states[0], made.built, making, seed)
        for number, states, made in unproved
        if made.built is not None
    ]
    for at, outcome in ask_all(workers, messages, LIMIT_S):
        number, states, made = unproved[at]
        if made.built is None or isinstance(outcome, Failure) or outcome.kind != "finished":
            yield number, states, made
        else:
            yield number, states, finished(outcome, made.built)


def _read(task: Task, reply: Reply) -> tuple[list[State], Made]:
    if isinstance(reply, Failure):
        raise AnsorpyError(f"{task.name}: no prediction: {reply.reason}")
    if reply.kind != "predicted":
        raise AnsorpyError(f"{task.name}: no prediction: {reply.fields.get('text')}")
    return predicted(reply)
