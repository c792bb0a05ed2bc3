"""Tf32: offered where it is asked for, with its error, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Precision, Task
from ansorpy.measure.check.compare import tolerance
from ansorpy.rules.algorithms.tf32 import ERROR, Tf32
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.steps.mma import MmaStep
from ansorpy.target import Target
from tests import workloads
from tests.rules.asking import CPU, CUDA
from tests.tensor_cores import matmul

DAG = ComputeDAG.of(workloads.matmul(64, 64, 64))


def definitions(precision: Precision, target: Target = CUDA) -> list[str]:
    sampler = SketchSampler(Task(DAG, target, 1, precision))
    return [definition.name for definition in sampler.definitions]


def test_it_is_offered_where_it_is_asked_for() -> None:
    assert definitions("tf32") == ["direct", "tf32"]
    assert definitions("default") == definitions("strict") == ["direct"]
    assert definitions("tf32", CPU) == definitions("tf32", Target.parse("sm_75")) == ["direct"]


def test_exact_products_stay_as_they_are() -> None:
    assert not list(Tf32().rewrite(ComputeDAG.of(matmul("float16", 64, 64, 64)), CUDA))
    assert not list(Tf32().rewrite(ComputeDAG.of(workloads.softmax(4, 64)), CUDA))


def test_its_error_is_allowed_for_when_results_are_checked() -> None:
    (made,) = Tf32().rewrite(DAG, CUDA)
    assert made.error == ERROR
    exact, rounded = (tolerance(dag, dag.outputs[0]) for dag in (DAG, made.dag))
    assert rounded == pytest.approx(exact + ERROR, rel=0.5)


def test_its_only_sketch_rounds_in_tensor_cores() -> None:
    sampler = SketchSampler(Task(DAG, CUDA, 1, "tf32"))
    rounded = [
        any(isinstance(step, MmaStep) for step in sampler.sketches[pair.sketch].history)
        for pair in sampler.pairs
        if pair.definition == "tf32"
    ]
    assert rounded and all(rounded)
    with pytest.raises(Exception, match="unknown precision"):
        replace(Task(DAG, CUDA, 1), precision="half")  # type: ignore[arg-type]


def test_nan_of_any_bits_stays_nan() -> None:
    sampler = SketchSampler(Task(DAG, CUDA, 1, "tf32"))
    pair = next(pair for pair in sampler.pairs if pair.definition == "tf32")
    a, b = np.ones((2, 64, 64), np.float32)
    a.view(np.uint32)[:2, 5] = [0x7FFFFFFF, 0xFFFFFFFF]  # as a GPU makes it
    [found] = run_dag(sampler.sketches[pair.sketch].current_dag, {"A": a, "B": b})
    assert np.isnan(found[:2]).all() and (found[2:] == 64).all()
