"""``python -m tests.campaigns.agreement``: compare another backend's results with those of LLVM.

Both backends build small cases of every family of the operator suite, each with random schedules,
and then the ``light`` networks without tuning.  The largest difference of each, relative to the
largest output, must stay within the tolerance of ``ansorpy verify``.

    python -m tests.campaigns.agreement --target c:cores=2 GMM SOFTMAX squeezenet
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import ansorpy as ap
from ansorpy.arrays import Array
from ansorpy.evaluation.inputs import random_value
from ansorpy.evaluation.onnx_edit import softmax_inputs_as_outputs
from ansorpy.evaluation.verify import DEFAULT_TOLERANCE, check_output, compare_outputs
from ansorpy.ir.task import Task
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.kernel import Kernel
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from benchmarks.ops.case import Case
from benchmarks.ops.suite import SMALL
from benchmarks.zoo.light import NAMES, light_model

__all__ = ["errors_of", "main", "network_agrees"]


def errors_of(case: Case, target: Target, *, schedules: int, seed: int) -> Iterator[float]:
    """Differences of the results of *target*'s backend and LLVM for random *schedules* of *case*.

    The first schedule is the default one.  Differences are relative to the largest output.
    """
    task = Task(case.dag, target, target.cores, name=case.name)
    rng, values = np.random.default_rng(seed), case.values(seed)
    for state in (State.initial(case.dag), *_drawn(task, schedules, rng)):
        ours = _output(state, task, target, values)
        theirs = _output(state, task, Target.host(), values)
        yield check_output(case.name, ours, theirs, DEFAULT_TOLERANCE).error


def _drawn(task: Task, count: int, rng: np.random.Generator) -> Iterator[State]:
    for sketch in SketchSampler(task).draw(count, rng):
        table = sketch.sample(32, rng)
        valid = table[sketch.valid(table)]
        if len(valid):
            yield sketch.resolve(valid[0])


def _output(state: State, task: Task, target: Target, values: dict[str, Array]) -> Array:
    lowered = lower(state)
    made = CompiledTask.of(task.dag, build_lowered(lowered, target, "kernel"),
                           compiled_from=state.definition)  # fmt: skip
    kernel = Kernel(made, target=target, threads=task.threads)
    constants = {port.name: values[port.name] for port in kernel.constants}
    found: Array = kernel.bind(**constants)(*(values[port.name] for port in kernel.inputs))
    return found


def network_agrees(name: str, target: Target, seed: int) -> bool:
    """Compare network *name* compiled for *target* and for this machine; print the result."""
    model, softmaxes = softmax_inputs_as_outputs(light_model(name, seed))
    made = [ap.compile(model, effort="none", target=t, threads=target.cores)
            for t in (target, Target.host())]  # fmt: skip
    names = [port.name for port in made[0].get_outputs()]
    feeds = {p.name: random_value(p.shape, p.dtype, seed, p.name) for p in made[0].get_inputs()}
    ours, theirs = (dict(zip(names, m.run(names, feeds), strict=True)) for m in made)
    result = compare_outputs(name, "LLVM", ours, theirs, softmaxes)
    worst = max(check.error for check in result.checks)
    print(f"{name:14} {'ok' if result.ok else 'DIFFERS':8} {worst:.1e}", flush=True)
    return result.ok


def main(arguments: list[str] | None = None) -> int:
    """Compare cases named on the command line (default all); return 4 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    families = [case.family for case in SMALL]
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=f"some of {', '.join((*families, *NAMES))}")  # fmt: skip
    parser.add_argument("--target", default="c")
    parser.add_argument("--schedules", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    unknown = set(asked.names) - {*families, *NAMES}
    if unknown:
        parser.error(f"nothing is called {', '.join(sorted(unknown))}")
    target, names = Target.parse(asked.target), asked.names or [*families, *NAMES]
    agree = True
    for case in (case for case in SMALL if case.family in names):
        found = [*errors_of(case, target, schedules=asked.schedules, seed=asked.seed)]
        is_close = max(found) <= DEFAULT_TOLERANCE
        said = f"{'ok' if is_close else 'DIFFERS':8} {max(found):.1e}"
        print(f"{case.family:14} {said} of {len(found)} schedules", flush=True)
        agree &= is_close
    for name in (name for name in NAMES if name in names):
        agree &= network_agrees(name, target, asked.seed)
    return 0 if agree else 4


if __name__ == "__main__":
    raise SystemExit(main())
