"""Operators in Python: :func:`tune` one, or :func:`build` a schedule written by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack, cast

from ansorpy.api.arguments import SearchArguments
from ansorpy.api.assemble import kernel_of
from ansorpy.api.display.shown import Shown, shown
from ansorpy.api.events import Planned, Tuned
from ansorpy.api.request import Request, as_target, require_memory
from ansorpy.api.sized.program import chosen_for_all, lowered_parts
from ansorpy.api.sized.task_group import TaskGroup
from ansorpy.api.sized.timer import SHARE, Timer
from ansorpy.api.tuner import open_tuner
from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.build.builder import task_symbol
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.build.listed import listed
from ansorpy.measure.proofs.handlers import proof_of
from ansorpy.options import with_arguments
from ansorpy.rules.base import SketchRule
from ansorpy.rules.presets import Preset, preset_for, template
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.schedules import schedule_text
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["build", "tune"]


@with_arguments
def tune(
    tensors: Sequence[Tensor],
    *,
    rules: Sequence[SketchRule] | Callable[[State], State] | None = None,
    progress: Shown = "auto",
    **arguments: Unpack[SearchArguments],
) -> Kernel:
    """Search for the fastest program that computes the outputs among *tensors* from the others.

    If they have dimensions (:func:`ansorpy.dim`), up to four sizes are tuned that stand for all,
    and the kernel has a schedule for each part of the sizes.

    Sampling, evolution, measuring and training repeat until a limit is reached.  Each trial is
    committed to the database as soon as it ends, so Ctrl-C loses none, and repeating the call
    continues the search.  Tensors are dense and row-major; shapes and types come from *tensors*.

    Args:
        tensors: The placeholders in calling order, then the outputs.
        rules: Sketch derivation rules in order; default: the target's preset.  Or a template, a
            function that schedules a :class:`State` by hand: the numbers that it leaves open are
            searched, and nothing else is.
        progress: How the search is shown: on a terminal or in a notebook (``"auto"``), elsewhere
            too (True), not at all (False); or a function that receives its events.
        **arguments

    Returns:
        The fastest program that matched the reference; ``median_ms`` is the median of its times.

    Raises:
        UsageError: *tensors* do not define a computation, or it reads outside of them; or an
            argument is wrong.
        MissingDependency: No machine of *workers* can time the task, or Ray is missing.
        NoValidProgram: No trial succeeded; the message counts the failures and shows one of each
            kind.  Or a kernel for all sizes differs from the reference.
        KeyboardInterrupt: The user stopped the search.

    Paper: OSDI'20 §3.
    """
    with shown(progress) as listener:
        request = Request.of(
            network=False, listener=listener, is_quiet=progress is False, **arguments
        )
        if rules is not None:
            request = replace(request, preset=_preset(request.target, rules))
        definition = ComputeDAG.of(tensors)
        _demand_inside(definition)
        return _tuned(definition, request)


def _tuned(definition: ComputeDAG, request: Request) -> Kernel:
    """The fastest kernel for *definition* that a search finds."""
    if definition.dims:
        build(State.initial(definition), target=request.target)  # refused before the search
    group = TaskGroup.of(definition, partial(_task, request))
    with open_tuner(request) as tuner:
        weights = group.weights(group.least)
        request.listener(Planned((), request, tuner.plan(weights)))
        calls = {task.key: weight for task, weight in weights.items()}
        tuner.tune(
            weights,
            report=lambda tuning: request.listener(Tuned(tuning, tuner.database, calls, ())),
            share=1 - SHARE if definition.dims else 1.0,
        )
        found = tuner.choose([*group.tasks])
        if not definition.dims:
            return kernel_of(found[0])
        return kernel_of(chosen_for_all(Timer.of(tuner, len(found)), group, found))


def build(
    state: State | Sequence[State] | Sequence[Tensor],
    *,
    target: Target | str | None = None,
    threads: int | None = None,
) -> Kernel:
    """Build a kernel like those :func:`tune` returns from a hand-written schedule, unmeasured.

    Args:
        state: A schedule with every decision bound; its definition's outputs become the kernel's.
            Or tensors as :func:`tune` takes them, which are computed as written, by serial loops.
            Or schedules of one definition, each for a part of the sizes of one dimension: a call
            runs the one for its size.
        threads: Default number of threads of a call; default: the cores this process may use.

    Raises:
        UsageError: The tensors do not define a computation, or it reads outside of them; or the
            schedules are not those of one definition for consecutive sizes.
        ScheduleError: A decision is still open, or the schedule is not legal.
        CodegenError: The schedule uses something that the target lacks.
    """
    states = _states(state)
    definition, made_for = states[0].definition, as_target(target)
    _demand_inside(definition)
    for given in states:
        if given.history:  # without steps, it computes its definition as written
            given.check()
    name = "_".join(op.name for op in definition.outputs)
    task = Task(definition, made_for, made_for.threads(threads), name=name)
    lowered = _lowered(states)
    built = listed(build_lowered(lowered, made_for, task_symbol(task)), lambda: lowered, made_for)
    schedule = schedule_text(states)
    compiled = CompiledTask.of(definition, built, program=lowered.run, schedule=schedule)
    return Kernel(compiled, target=made_for, threads=task.threads, name=name)


def _demand_inside(definition: ComputeDAG) -> None:
    """Refuse a definition that reads outside of its tensors.

    The program of its plain schedule is proved, whose proof is short whatever the sizes are.
    """
    wrong = proof_of(lower(State.initial(definition))).refuted
    if wrong:
        raise UsageError(
            wrong[0].message, hint="read it only where it exists: ap.select(condition, read, other)"
        )


def _states(given: State | Sequence[State] | Sequence[Tensor]) -> list[State]:
    """The schedules to build."""
    if isinstance(given, State):
        return [given]
    if isinstance(given, Sequence):
        states = [state for state in given if isinstance(state, State)]
        if states and len(states) == len(given):
            return states
    return [State.initial(cast("Sequence[Tensor]", given))]


def _lowered(states: Sequence[State]) -> Lowered:
    """The program of *states*, schedules of one definition for parts of its sizes.

    Raises:
        UsageError: They are not.
    """
    ranges = [state.definition.dims for state in states]
    varying = [dims for dims in zip(*ranges, strict=False) if len(set(dims)) > 1]
    plain = {
        structural_hash(dag_at(state.definition, {dims[n]: 1 for dims in varying}))
        for n, state in enumerate(states)
    }
    if len(states) > 1 and (len(varying) != 1 or len(plain) > 1):
        raise UsageError(
            "several schedules make one kernel if they are those of one definition, for "
            "consecutive sizes of one dimension",
            hint='make the definition with ap.dim("n", 1, 15) and with ap.dim("n", 16, 512)',
        )
    if len(states) == 1:
        return lowered_parts(states[0].definition, states, ())
    [parts] = varying
    low, high = min(dim.low for dim in parts), max(dim.high for dim in parts)
    widest = max(range(len(parts)), key=lambda n: parts[n].high - parts[n].low)
    whole = dim_extent(replace(parts[widest], low=low, high=high))
    definition = dag_at(states[widest].definition, {parts[widest]: whole})
    return lowered_parts(definition, states, parts)


def _task(request: Request, dag: ComputeDAG, suffix: str) -> Task:
    name = "_".join(op.name for op in dag.outputs) + suffix
    require_memory(name, sum(op.bytes for op in (*dag.args, *dag.outputs)))
    return Task(dag, request.target, request.threads, request.precision, name=name)


def _preset(target: Target, rules: Sequence[SketchRule] | Callable[[State], State]) -> Preset:
    if callable(rules):
        return template(rules)
    given = rules if isinstance(rules, Sequence) else [rules]
    strangers = [rule for rule in given if not isinstance(rule, SketchRule)]
    if strangers:
        raise UsageError(
            f"{strangers[0]!r} is not a sketch rule",
            hint="list rules, or pass a function that schedules a state",
        )
    if not rules:
        raise UsageError("there are no rules", hint="leave rules out to use those of the target")
    return replace(preset_for(target), sketch=tuple(rules))
