"""Choose programs for many tasks without measuring, in several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from ansorpy.config import available_cores
from ansorpy.cost.protocol import CostModel
from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.measure.workers.pool import ask_all
from ansorpy.measure.workers.supervisor import Failure, Outcome, Worker
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import Preset, preset_for
from ansorpy.schedule.state import State
from ansorpy.tasks.predict import PredictOptions, predicted_best
from ansorpy.tasks.predict_handlers import predict_message, predicted_states

__all__ = ["predicted_of_all"]

_TASKS_A_WORKER = 4
"""Starting a worker costs about as much as predicting two tasks."""

_TIMEOUT_S = 600.0


def predicted_of_all(
    tasks: Sequence[Task],
    *,
    preset: Preset | None = None,
    model: CostModel | None = None,
    options: PredictOptions | None = None,
    processes: int | None = None,
) -> Iterator[tuple[int, list[State]]]:
    """Yield each task's number with its programs, the one predicted fastest first.

    The programs are those of :func:`~ansorpy.tasks.predict.predicted_best`, whichever process
    predicts them; tasks come in the order they finish.

    Args:
        preset: Rules; if given, all predictions are made in this process; default: the target's.
        model: Cost model; if given, likewise; default: the analytic model.
        processes: Number of processes; default: as many as pay off, at most one per core.

    Raises:
        AnsorpyError: A worker died or answered with an error.
    """
    chosen = options or PredictOptions()
    many = processes or min(available_cores(), len(tasks) // _TASKS_A_WORKER)
    if many < 2 or preset is not None or model is not None:
        for number, task in enumerate(tasks):
            source = SketchSampler(task, preset)
            yield number, list(predicted_best(task, source, model=model, options=chosen))
        return
    messages = [predict_message(t, preset_for(t.target).name, chosen) for t in tasks]
    with ExitStack() as stack:
        workers = [Worker("ansorpy.tasks.predict_handlers") for _ in range(many)]
        for worker in workers:
            stack.callback(worker.close)
        for number, outcome in ask_all(workers, messages, _TIMEOUT_S):
            yield number, _states(tasks[number], outcome)


def _states(task: Task, outcome: Outcome) -> list[State]:
    if isinstance(outcome, Failure):
        raise AnsorpyError(f"{task.name}: no prediction: {outcome.reason}")
    if outcome.kind != "predicted":
        raise AnsorpyError(f"{task.name}: no prediction: {outcome.fields.get('text')}")
    return predicted_states(outcome)
