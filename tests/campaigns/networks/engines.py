"""The ways to compute a network: ansorpy's and others'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto
from onnx.reference import ReferenceEvaluator

import ansorpy as ap
from ansorpy.errors import ScheduleError, UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import Network, partition
from ansorpy.graph.choices import Choices
from ansorpy.graph.optimize import arrange, simplify
from ansorpy.graph.passes.channels_last import channels_last
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dims_of
from ansorpy.ir.task import Task
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.campaigns.networks.evaluators import FAULTS, session_options
from tests.campaigns.networks.nodes import all_of, misread, pads_lower

__all__ = [
    "by_onnxruntime",
    "by_reference",
    "compiled_model",
    "drawn_model",
    "drawn_state",
    "optimised",
    "unoptimised",
    "with_open_sizes",
]

Array = NDArray[Any]
Arrays = Mapping[str, Array]

_OTHERWISE = frozenset({"Adam", "Det", "LogSoftmax", "MeanVarianceNormalization"})
_ROWS = 4
_SAMPLED = 0.5


def unoptimised(model: ModelProto) -> Network:
    """*model* as it was imported, with images stored as convolutions are defined on, no more."""
    return partition(channels_last(load(model)))


def optimised(model: ModelProto, rng: np.random.Generator) -> Network:
    """*model* after all graph passes; where they leave a choice, a random one."""
    graph = simplify(load(model), byte_dots=bool(rng.integers(2)))
    choices = Choices()
    arrange(graph, choices)
    answers = {
        question: list(ways)[int(rng.integers(len(ways)))]
        for question, ways in choices.asked.items()
    }
    try:
        return partition(arrange(graph, Choices(answers)))
    except ValueError as error:
        if "has no way" not in str(error):  # because of the answer to another question
            raise
        return partition(arrange(graph, Choices()))


def with_open_sizes(model: ModelProto, rng: np.random.Generator) -> Network | None:
    """*model* with all sizes of its inputs that are equal to one of them left open.

    None if its operators need the size.
    """
    sizes = {d.dim_value for i in model.graph.input for d in i.type.tensor_type.shape.dim}
    if not sizes:
        return None
    size, made = int(rng.choice(sorted(sizes))), ModelProto()
    made.CopyFrom(model)
    for value in made.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value == size:
                dim.dim_param = "n"
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        network = partition(arrange(simplify(load(made, dims={"n": (1, size + 3)})), Choices()))
    except UnsupportedModel:
        return None
    shapes = [extent for value in network.inputs for extent in value.shape]
    return network if dims_of(shapes) else None


def drawn_model(
    network: Network, rng: np.random.Generator, target: Target, *, strict: bool
) -> CompiledModel:
    """*network* for *target*; half of its programs drawn from the search space of their task."""
    threads = int(rng.integers(1, 3))
    tasks = {
        w.key: _compiled(_task(w.dag, target, threads, strict), rng) for w in network.workloads()
    }
    return CompiledModel.of(network, tasks, target=target, threads=threads)


def compiled_model(model: ModelProto, seed: int) -> CompiledModel:
    """*model* as a user gets it who does not tune: checked programs, predicted to be fast."""
    with TemporaryDirectory() as folder:
        return ap.compile(model, effort="none", db=Path(folder, "tune.db"), threads=1, seed=seed)


def _task(dag: ComputeDAG, target: Target, threads: int, strict: bool) -> Task:
    return Task(dag, target, threads, "strict" if strict else "default")


def _compiled(task: Task, rng: np.random.Generator) -> CompiledTask:
    """A program of the search space, or the default one, as which programs for open sizes begin."""
    sampled = rng.random() < _SAMPLED and not task.dag.dims
    state = drawn_state(task, rng) if sampled else State.initial(task.dag)
    lowered = lower(state)
    built = build_lowered(lowered, task.target, f"task_{crc32(task.key.encode()):08x}")
    return CompiledTask.of(task.dag, built, compiled_from=state.definition, program=lowered.run)


def drawn_state(task: Task, rng: np.random.Generator) -> State:
    """A program that the search could propose; the default schedule if a few draws give none."""
    sketch = SketchSampler(task).draw_one(rng)
    table = sketch.sample(_ROWS, rng)
    for row in table[sketch.valid(table)]:
        state = sketch.resolve(row)
        try:
            lower(state)
        except ScheduleError:
            continue
        return state
    return State.initial(task.dag)


def by_onnxruntime(model: ModelProto, feeds: Arrays) -> Sequence[Array] | None:
    """The outputs as onnxruntime computes them; None if it does not know an operator or type.

    It is also None for what it (1.31) computes otherwise: Shrink and Attention of float64 are of
    float32, capped scores come out of Attention before they are, Bernoulli draws 0 for a
    probability of 1, and Resize has other weights where it leaves out what is outside.
    """
    nodes = list(all_of(model.graph.node))
    of_float64 = any(array.dtype == np.float64 for array in feeds.values())
    if of_float64 and any(node.op_type in ("Attention", "Shrink") for node in nodes):
        return None
    if any(n.op_type == "Bernoulli" or _gives_scores(n) or _leaves_out(n) for n in nodes):
        return None
    if any(array.dtype == ml_dtypes.bfloat16 for array in feeds.values()):
        return None
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), session_options(), providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, dict(feeds)))
    except Exception as error:  # its own exceptions have no common base class
        if type(error).__module__.startswith("onnxruntime"):
            return None
        raise


def _gives_scores(node: NodeProto) -> bool:
    return node.op_type == "Attention" and len(node.output) > 3


def _leaves_out(node: NodeProto) -> bool:
    return any(a.name == "exclude_outside" and a.i for a in node.attribute)


def by_reference(model: ModelProto, feeds: Arrays) -> Sequence[Array] | None:
    """The outputs as onnx's reference computes them in the model's types.

    None if it fails, or is known to be wrong: its LogSoftmax is the logarithm of what may be 0, its
    Adam and Det give float64, its MeanVarianceNormalization cancels, and it takes a result that is
    left out for every operand that is.
    """
    nodes = list(all_of(model.graph.node))
    if any(pads_lower(n) or misread(n) or n.op_type in _OTHERWISE for n in nodes):
        return None
    if any("" in n.output for n in nodes):
        return None
    try:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(model).run(None, dict(feeds)))
    except FAULTS:
        return None
