"""The campaign: each stored graph is compiled with no options, and run at several sizes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto

import ansorpy as ap
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.ir.dag import ComputeDAG
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from benchmarks.zoo.exported.catalogue import Network, by_name
from benchmarks.zoo.exported.stored import restored, stored_names
from tests.campaigns.campaign import Campaign, Tally
from tests.campaigns.exported.compare import assert_agree, assert_same_boxes

__all__ = ["EXPORTED", "compared", "compiled_as_users_do", "plainly_compiled"]

_QUICKEST = ("scaled_logistic.sklearn",)
"""What `make test` compiles as users do."""


def _case(rng: np.random.Generator, number: int) -> Tally:
    name = _ordered()[number]
    tally = Tally()
    try:
        network = by_name(name)
        model = restored(name)
        worst = compared(model, compiled_as_users_do(model), network, rng)
    except Exception as error:
        raise AssertionError(f"{name}: {error}") from error
    tally.kinds[network.kind] += 1
    tally.note("difference", worst, name)
    return tally


def compiled_as_users_do(model: ModelProto) -> CompiledModel:
    """*model* with no options but that nothing is measured."""
    with TemporaryDirectory() as folder:
        return ap.compile(model, effort="none", db=Path(folder, "tune.db"), threads=1)


def plainly_compiled(model: ModelProto) -> CompiledModel:
    """*model* with the loops of its definitions, which nothing has chosen."""
    network = partition(optimize(load(model)))
    target = Target.host()
    tasks = {w.key: _plain(w.dag, target, n) for n, w in enumerate(network.workloads())}
    return CompiledModel.of(network, tasks, target=target, threads=1)


def _plain(dag: ComputeDAG, target: Target, number: int) -> CompiledTask:
    state = State.initial(dag)
    lowered = lower(state)
    built = build_lowered(lowered, target, f"task_{number:08x}")
    return CompiledTask.of(dag, built, compiled_from=state.definition, program=lowered.run)


def compared(
    model: ModelProto, compiled: CompiledModel, network: Network, rng: np.random.Generator
) -> float:
    """Compare *compiled* with onnxruntime at all sizes; returns the largest difference."""
    session = _session(model)
    names = [output.name for output in session.get_outputs()]
    read = {port.name for port in session.get_inputs()}
    worst = 0.0
    for sizes in network.sizes:
        feeds = {n: a for n, a in network.feeds(rng, sizes).items() if n in read}
        wanted: Any = session.run(None, feeds)
        found = compiled.run(None, feeds)
        try:
            if network.selects:
                worst = max(worst, assert_same_boxes(found, wanted))
            else:
                worst = max(worst, assert_agree(names, found, wanted))
        except AssertionError as error:
            raise AssertionError(f"at {dict(sizes)}: {error}") from None
    return worst


def _session(model: ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _ordered() -> list[str]:
    """The stored graphs, those that compile quickest first."""
    return [*_QUICKEST, *(name for name in stored_names() if name not in _QUICKEST)]


EXPORTED = Campaign(
    "compiles a network as exporters write it, and compares it with onnxruntime at several sizes",
    _case,
    size=len(_ordered()),
    short=len(_QUICKEST),
    limit_s=300.0,
)
