"""The Python interface: :func:`tune` an operator, :func:`compile` a network, build a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import onnx

from ansorpy.api.assemble import kernel_of
from ansorpy.api.parts import PartOptions, Parts
from ansorpy.api.request import Request, as_seed, as_target, require_memory
from ansorpy.api.session import open_session
from ansorpy.api.several import WantedNetwork, compile_many, uninterrupted
from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Precision, Task
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor
from ansorpy.measure.build_job import build_lowered
from ansorpy.measure.builder import task_symbol
from ansorpy.measure.workers import LOCAL
from ansorpy.rules.base import SketchRule
from ansorpy.rules.presets import Preset, preset_for
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.plan import CompiledTask
from ansorpy.schedule.lower import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from ansorpy.tasks.budget import Effort
from ansorpy.tasks.objective import Objective

__all__ = ["build", "compile", "tune"]


def tune(
    tensors: Sequence[Tensor],
    *,
    trials: int | None = None,
    time_limit: float | None = None,
    effort: Effort = "quick",
    target: Target | str | None = None,
    threads: int | None = None,
    precision: Precision = "default",
    db: str | Path | None = None,
    workers: str = LOCAL,
    rules: Sequence[SketchRule] | None = None,
    seed: int | None = None,
    **parts: Unpack[PartOptions],
) -> Kernel:
    """Search for the fastest program that computes the outputs among *tensors* from the others.

    Sampling, evolution, measuring and training repeat until *trials* programs have been compiled
    and timed.  Tensors are dense and row-major; shapes and types come from *tensors*.

    Args:
        tensors: The placeholders in calling order, then the outputs.
        trials: Programs to measure; nearly all of the running time goes there.
        time_limit: Seconds.  Either limit replaces the effort's (quick 30 s, full 3 minutes).
        effort: ``"none"`` measures nothing beyond checking that the result is right.
        threads, precision: As :func:`compile` takes them.
        db: SQLite file of records, each committed as soon as it exists; running again resumes.
        workers: Where programs are timed: ``"local"``, or a Ray cluster (``"ray://host:10001"``).
        rules: Sketch derivation rules in order; default: the target's preset.
        seed: The same seed, records and model give the same candidates; timings still vary.
        parts: Parts of the search to replace, by name or with your own (``docs/search.md``).

    Returns:
        The fastest program that matched the reference; ``median_ms`` is the median of its times.

    Raises:
        UsageError: *tensors* do not define a computation, or an option is wrong.
        MissingDependency: No machine of *workers* can time the task, or Ray is missing.
        NoValidProgram: No trial succeeded; the message counts failures and shows one of each kind.

    Paper: OSDI'20 §3.
    """
    request = Request(
        effort=effort,
        trials=trials,
        time_limit_s=time_limit,
        target=(made_for := as_target(target)),
        threads=made_for.threads(threads),
        precision=precision,
        db=None if db is None else Path(db),
        workers=workers,
        parts=Parts.of(parts),
        seed=as_seed(seed),
        preset=_preset(made_for, rules),
    )
    task = _task(tensors, request)
    with open_session(request) as session:
        uninterrupted(session.tune({task: 1.0}, network=False))
        [chosen] = session.choose([task])
    return kernel_of(chosen)


def build(
    state: State, *, target: Target | str | None = None, threads: int | None = None
) -> Kernel:
    """Build the kernel of a hand-written schedule, as :func:`tune` returns one, without measuring.

    Args:
        state: A schedule with every decision bound; its definition's outputs are the kernel's.
        threads: Default number of threads of a call; default: the cores this process may use.

    Raises:
        ScheduleError: A decision is still open, or the schedule is not legal.
        CodegenError: The schedule uses something that the target lacks.
    """
    made_for = as_target(target)
    name = "_".join(op.name for op in state.base.outputs)
    task = Task(state.base, made_for, made_for.threads(threads), name=name)
    lowered = lower(state)
    built = build_lowered(lowered, made_for, task_symbol(task))
    compiled = CompiledTask.of(state.base, built, compiled_from=state.dag, program=lowered.run)
    return Kernel(compiled, target=made_for, threads=task.threads, name=name)


def compile(
    model: str | Path | onnx.ModelProto,
    *,
    objective: str | Objective = "weighted_sum",
    bound: float | None = None,
    effort: Effort = "quick",
    trials: int | None = None,
    trials_per_task: int | None = None,
    time_limit: float | None = None,
    target: Target | str | None = None,
    threads: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    precision: Precision = "default",
    memory: int | None = None,
    db: str | Path | None = None,
    workers: str = LOCAL,
    seed: int | None = None,
    **parts: Unpack[PartOptions],
) -> CompiledModel:
    """Compile the ONNX network *model* for *target*, tuning its tasks first.

    Args:
        model: A path or a loaded model; arena, constants and workspace may take ``memory`` bytes.
        objective: ``"latency_bounds"`` ends the search once all kernels together take at most
            ``bound`` seconds, ``"early_stop"`` when no task improves any more; or your own.
        effort: ``"none"`` measures nothing beyond checking that the result is right; ``"quick"``
            takes 5 minutes, ``"full"`` 30.  An explicit limit replaces the effort's.
        trials: Programs in all; ``trials_per_task``: for each task; ``time_limit``: seconds.
        threads: Threads to tune for; default: the cores this process may use.
        shapes: Shape by input name; ``dims``: size by name of a dynamic dimension.
        precision: ``"strict"`` excludes algorithms with a stated error (Winograd); ``"tf32"`` lets
            tensor cores round float32 factors.  Sums may be reassociated in every mode.
        db: SQLite file of records; running again with it resumes.
        workers: Where programs are timed: ``"local"``, or a Ray cluster (``"ray://host:10001"``).
        parts: Parts of the search to replace (``docs/search.md``).

    Raises:
        ForeignFile, UnsupportedModel: Not an ONNX model; unsupported operators, listed in a table.
        UsageError: A dynamic dimension without a size, too little memory, or a wrong option.
        NoValidProgram: No trial of some task succeeded.
    """
    wanted = WantedNetwork(model, bound=bound, memory=memory, shapes=shapes, dims=dims)
    [compiled] = compile_many(
        [wanted],
        objective=objective,
        effort=effort,
        trials=trials,
        trials_per_task=trials_per_task,
        time_limit=time_limit,
        target=target,
        threads=threads,
        precision=precision,
        db=db,
        workers=workers,
        seed=seed,
        **parts,
    )
    return compiled


def _task(tensors: Sequence[Tensor], request: Request) -> Task:
    dag = _definition(tensors)
    name = "_".join(op.name for op in dag.outputs)
    require_memory(name, sum(op.bytes for op in (*dag.args, *dag.outputs)))
    return Task(dag, request.target, request.threads, request.precision, name=name)


def _preset(target: Target, rules: Sequence[SketchRule] | None) -> Preset | None:
    if rules is None:
        return None
    if not rules:
        raise UsageError("there are no rules", hint="leave them out for those of the target")
    return replace(preset_for(target), sketch=tuple(rules))


def _definition(tensors: Sequence[Tensor]) -> ComputeDAG:
    """The DAG of ``[placeholders..., outputs...]``, with errors for what callers may get wrong."""
    strangers = [t for t in tensors if not isinstance(t, PlaceholderOp | ComputeOp)]
    if strangers:
        raise UsageError(
            f"{strangers[0]!r} is not a tensor", hint="pass what placeholder() and compute() return"
        )
    if not any(isinstance(t, ComputeOp) for t in tensors):
        raise UsageError("nothing to compute", hint="end the list with the tensor to compute")
    try:
        return ComputeDAG.of(tensors)
    except ValueError as error:
        raise UsageError(str(error), hint="list every placeholder, then the outputs") from None
