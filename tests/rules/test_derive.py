"""The sketches of the original's own test workloads, and the trace of how they came about."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, Expr
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.derive import BREADTH, derive, generate_sketches
from ansorpy.rules.explain import explain
from ansorpy.rules.presets import ANSOR_CPU, ANSOR_CUDA
from ansorpy.target import Target
from tests import workloads

CPU = replace(Target.parse("x86-64-v3"), cores=4)
CUDA = Target.parse("sm_80")

# Source: apache/tvm v0.17, tests/python/auto_scheduler/test_auto_scheduler_sketch_generation.py
CPU_COUNTS = [
    ("matmul", workloads.matmul(512, 512, 512), 3),
    ("matmul_8_8_512", workloads.matmul(8, 8, 512), 5),
    ("double_matmul", workloads.double_matmul(512), 9),
    ("conv2d_bn_relu", workloads.conv2d_bn_relu(), 3),
    ("max_pool2d", workloads.max_pool2d(), 1),
    ("min_reduce", workloads.min_reduce(), 3),
    ("softmax_2d", workloads.softmax(1, 1024), 9),
    ("softmax_4d", workloads.softmax(1, 12, 128, 128), 9),
    ("winograd", workloads.winograd(), 3),
    ("zero_rank", workloads.zero_rank_reduce(), 3),
]
CUDA_COUNTS = [
    ("matmul", workloads.matmul(512, 512, 512), 1),
    ("matmul_8_8_1024", workloads.matmul(8, 8, 1024), 2),
    ("double_matmul", workloads.double_matmul(512), 1),
    ("conv2d_bn_relu", workloads.conv2d_bn_relu(), 1),
    ("max_pool2d", workloads.max_pool2d(), 1),
    ("min_reduce", workloads.min_reduce(), 2),
    ("softmax_2d", workloads.softmax(2, 1024), 4),
    ("softmax_4d", workloads.softmax(1, 12, 128, 128), 4),
    ("winograd", workloads.winograd(), 1),
    ("zero_rank", workloads.zero_rank_reduce(), 2),
]


def named(value: object) -> str:
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(("name", "tensors", "count"), CPU_COUNTS, ids=named)
def test_published_sketch_counts_cpu(name: str, tensors: list[Tensor], count: int) -> None:
    sketches = generate_sketches(ComputeDAG.of(tensors), CPU, ANSOR_CPU)
    assert len(sketches) == count
    assert len({str(s.history) for s in sketches}) == count


@pytest.mark.parametrize(("name", "tensors", "count"), CUDA_COUNTS, ids=named)
def test_published_sketch_counts_cuda(name: str, tensors: list[Tensor], count: int) -> None:
    sketches = generate_sketches(ComputeDAG.of(tensors), CUDA, ANSOR_CUDA)
    assert len(sketches) == count
    assert len({str(s.history) for s in sketches}) == count


def products(count: int) -> ComputeDAG:
    """A chain of *count* products, the first and the last of which are outputs."""
    x = placeholder((16, 16), name="X")
    made: list[Tensor] = [x]
    for n in range(count):
        w, k = placeholder((16, 16), name=f"W{n}"), reduce_axis(16, name="k")
        made.append(compute((16, 16), partial(_product, made[-1], w, k), name=f"Y{n}"))
    return ComputeDAG([made[1], made[-1]])


def _product(x: Tensor, w: Tensor, k: Axis, i: Expr, j: Expr) -> Expr:
    return b.sum(x[i, k] * w[k, j], axis=k)


def test_sketches_of_many_products_stay_few_and_those_left_out_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breadth = 32
    assert breadth < BREADTH, "fewer than are kept otherwise, so that fewer products exceed it"
    for module in ("derive", "explain"):
        monkeypatch.setattr(f"ansorpy.rules.{module}.BREADTH", breadth)
    few, many = (derive(products(n), CPU, ANSOR_CPU) for n in (3, 5))
    assert few.left_out == 0
    assert len(few.sketches) < len(many.sketches) <= breadth
    assert len({str(s.history) for s in many.sketches}) == len(many.sketches)
    again = derive(products(5), CPU, ANSOR_CPU)
    assert [str(s.history) for s in again.sketches] == [str(s.history) for s in many.sketches]
    ways = {n: {str(x.stage(f"Y{n}").iters) for x in many.sketches} for n in (0, 2, 4)}
    assert all(len(found) > 1 for found in ways.values())
    text = explain(products(5), CPU, ANSOR_CPU)
    assert f"{many.left_out} states were left out: there were more than {breadth} at once" in text


def test_a_pooling_has_one_sketch_without_steps() -> None:
    (sketch,) = generate_sketches(ComputeDAG.of(workloads.max_pool2d()), CPU, ANSOR_CPU)
    assert sketch.history == ()


def test_a_matmul_sketch_is_the_loop_nest_of_the_paper() -> None:
    plain = generate_sketches(ComputeDAG.of(workloads.matmul(8, 6, 4)), CPU, ANSOR_CPU)[0]
    assert [it.name for it in plain.stage("C").iters] == [
        "i.0", "j.0", "i.1", "j.1", "k.0", "i.2", "j.2", "k.1", "i.3", "j.3",
    ]  # fmt: skip


def test_apply_keeps_the_original_state_for_later_rules() -> None:
    derivation = derive(ComputeDAG.of(workloads.matmul(512, 512, 512)), CPU, ANSOR_CPU)
    on_c = [(r.rule, r.verdict.answer.value) for r in derivation.trace if r.branch == 0]
    assert on_c == [
        ("AlwaysInline", "skip"),
        ("SimplifyComputeWithConstTensor", "skip"),
        ("AddRfactor", "skip"),
        ("AddCacheWrite", "apply"),
        ("MultiLevelTilingWithFusion", "skip"),
        ("MultiLevelTiling", "apply and skip rest"),
    ]


def test_explain_gives_every_answer_a_reason() -> None:
    text = explain(ComputeDAG.of(workloads.conv2d_bn_relu()), CPU, ANSOR_CPU, in_full=True)
    row = next(r for r in text.splitlines() if " bn_add " in r and " AlwaysInline " in r)
    assert "apply and skip rest: strictly inlineable" in row
    assert '"relu" can take over its tiles -> 2 states' in text
    assert text.count("\nsketch ") == 3


def test_explain_shows_the_rules_that_apply_and_stages_alike_together() -> None:
    text = explain(ComputeDAG.of(workloads.conv2d_bn_relu()), CPU, ANSOR_CPU)
    lines = text.splitlines()
    reason = "    AlwaysInline: strictly inlineable: reads in order, cheap, no branch"
    assert lines[lines.index(reason) - 1] == "  bn_add, bn_mul, bias_add" and "skip:" not in text
    assert '    MultiLevelTilingWithFusion: "relu" can take over its tiles -> 2 states' in lines
    assert [line for line in lines if "sketch" in line] == [
        "  sketch 0: conv MultiLevelTilingWithFusion (1 of 2)",
        "  sketch 1: conv MultiLevelTilingWithFusion (2 of 2)",
        "  sketch 2: conv MultiLevelTiling",
    ]
