"""Random programs to export: definitions under random schedules, and small networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto

import ansorpy as ap
from ansorpy.errors import UnsupportedModel
from ansorpy.evaluation.inputs import random_value
from ansorpy.evaluation.onnx_edit import softmax_inputs_as_outputs
from ansorpy.evaluation.verify import compare_outputs
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Task
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.ports import Port
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests.campaigns.networks.campaign import compare, grown
from tests.campaigns.networks.engines import drawn_model, drawn_state, optimised
from tests.properties.random_elements import random_values
from tests.properties.random_operators import random_definition

__all__ = ["Exportable", "compiled_network", "random_kernel", "random_network"]

Array = NDArray[np.generic]

_TOLERANCE = 1e-4
"""Of a random definition, relative to its largest value, as in ``tests/properties``."""


@dataclass(frozen=True)
class Exportable:
    """A program with inputs, and a check of its outputs.

    Args:
        export: Writes it to a path.
        check: Raises :class:`AssertionError` unless these outputs are right.
    """

    export: Callable[[Path], object]
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    feeds: Sequence[Array]
    check: Callable[[Sequence[Array]], None]


def random_kernel(rng: np.random.Generator, target: Target, threads: int) -> Exportable:
    """A random definition under a random schedule of the rules for *target*."""
    dag = random_definition(rng)
    task = Task(dag, target, threads)
    state = drawn_state(task, rng)
    values = random_values(dag, rng)
    built = build_lowered(lower(state), target, "kernel")
    made = CompiledTask.of(dag, built, compiled_from=state.definition)
    kernel = Kernel(made, target=target, threads=threads)
    kernel.bind(**{port.name: values[port.name] for port in kernel.constants})
    return Exportable(
        kernel.export, kernel.inputs, kernel.outputs,
        [values[port.name] for port in kernel.inputs],
        lambda outputs: _equal_interpreter(dag, values, outputs),
    )  # fmt: skip


def random_network(rng: np.random.Generator, target: Target) -> Exportable:
    """A random ONNX network, half of its programs drawn from their search spaces."""
    while True:
        net = grown(rng)
        results = net.results()
        model = net.model(results)
        with suppress(UnsupportedModel):
            network = optimised(model, rng)
            break
    made = drawn_model(network, rng, target, strict=net.strict)
    inputs, feeds = made.get_inputs(), net.feeds()
    return Exportable(
        made.export, inputs, made.get_outputs(), [feeds[port.name] for port in inputs],
        lambda outputs: compare(model, results, {"the library": outputs}),
    )  # fmt: skip


def compiled_network(model: ModelProto, target: Target, seed: int) -> Exportable:
    """The ONNX network *model*, compiled without tuning; checked against onnxruntime."""
    model, softmaxes = softmax_inputs_as_outputs(model)
    made: CompiledModel = ap.compile(model, effort="none", target=target, threads=target.cores)
    feeds = {p.name: random_value(p.shape, p.dtype, seed, p.name) for p in made.get_inputs()}
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [port.name for port in made.get_outputs()]
    expected = dict(zip(names, session.run(names, feeds), strict=True))

    def check(outputs: Sequence[Array]) -> None:
        ours = dict(zip(names, outputs, strict=True))
        compare_outputs("the library", "onnxruntime", ours, expected, softmaxes).demand()

    inputs = made.get_inputs()
    values = [feeds[port.name] for port in inputs]
    return Exportable(made.export, inputs, made.get_outputs(), values, check)


def _equal_interpreter(
    dag: ComputeDAG, values: Mapping[str, Array], outputs: Sequence[Array]
) -> None:
    expected = run_dag(dag, values, dtype=DType.FLOAT64)
    for op, got, want in zip(dag.outputs, outputs, expected, strict=True):
        atol = _TOLERANCE * max(1.0, float(np.abs(want).max(initial=0.0)))
        np.testing.assert_allclose(np.asarray(got, float), want, rtol=0, atol=atol, err_msg=op.name)
