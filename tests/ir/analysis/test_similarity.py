"""Which definitions are of one class."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansorpy.ir.analysis.similarity import anchor_name, class_hash
from ansorpy.ir.builders import select, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.target import Target
from tests.ir.workloads import ALL
from tests.workloads import (
    attention,
    conv2d_bn_relu,
    depthwise_pointwise,
    layer_norm,
    matmul,
    max_pool2d,
    min_reduce,
    softmax,
    transposed_conv1d,
)


def of(tensors: list[Tensor]) -> str:
    return class_hash(ComputeDAG.of(tensors))


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (matmul, [(512, 512, 512), (31, 7, 2), (6, 6, 6)]),
        (conv2d_bn_relu, [(1, 56, 56, 64, 64), (1, 7, 13, 3, 512), (1, 9, 9, 9, 9)]),
        (depthwise_pointwise, [(1, 56, 56, 64, 64), (1, 7, 13, 3, 512)]),
        (max_pool2d, [(1, 56, 56, 512), (1, 7, 13, 3)]),
        (min_reduce, [(10, 1024), (3, 7)]),
        (softmax, [(16, 1000), (16, 16)]),
        (layer_norm, [(16, 1000), (3, 7)]),
        (attention, [(2, 64, 64, 16), (3, 17, 5, 8)]),
        (transposed_conv1d, [(8, 16, 8), (33, 7, 5)]),
    ],
)
def test_shapes_do_not_count(
    make: Callable[..., list[Tensor]], shapes: list[tuple[int, ...]]
) -> None:
    assert len({of(make(*shape)) for shape in shapes}) == 1


def test_windows_and_extents_of_one_count() -> None:
    convolutions = [
        conv2d_bn_relu(1, 56, 56, 64, 64, kernel, stride, padding)
        for kernel, stride, padding in ((3, 1, 1), (3, 2, 1), (5, 1, 2), (7, 2, 3), (1, 1, 0))
    ]
    transposed = [transposed_conv1d(8, 16, 8, *window) for window in ((4, 2, 1), (9, 3, 1))]
    assert len({of(tensors) for tensors in [*convolutions, *transposed]}) == 7
    assert len({of(matmul(*shape)) for shape in ((8, 8, 8), (1, 8, 8), (8, 1, 8))}) == 3


def test_padding_and_values_of_floats_do_not_count() -> None:
    def shifted(n: int, by: int, fill: float, scale: float) -> str:
        x = placeholder((n,), name="x")

        def at(i: Expr) -> Expr:
            return select(i >= by, x[i - by] * scale, fill)

        return class_hash(ComputeDAG([compute((n + by,), at, name="y")]))

    assert len({shifted(8, 1, 0.0, 2.0), shifted(9, 3, -1.0, 0.5), shifted(3, 3, 3.0, 3.0)}) == 1


def test_a_partition_of_an_axis_is_no_window() -> None:
    def groups(n: int, channels: int) -> str:
        x = placeholder((n * channels,), name="x")
        c = reduce_axis(channels, name="c")
        return class_hash(
            ComputeDAG([compute((n,), lambda g: sum(x[g * channels + c], c), name="y")])
        )

    assert len({groups(8, 2), groups(12, 3), groups(2, 64)}) == 1


def test_different_computations_have_different_classes() -> None:
    assert len({class_hash(make()) for make in ALL}) == len(ALL)


def test_an_unrolled_iteration_that_ends_in_a_comparison_has_a_class() -> None:
    x = placeholder((4,), name="x")

    def body(i: Expr) -> Expr:
        e = x[i]
        for _ in range(60):
            e = e * e + e
        return select(e > 0.0, e, 0.0)

    dag = ComputeDAG([compute((4,), body, name="y")])
    assert len(class_hash(dag)) == 32 and anchor_name(dag) == "map of 1 tensors, 1 + 0 axes"


def test_types_and_constants_count() -> None:
    plain, constant = of(matmul(8, 8, 8)), of(matmul(8, 8, 8, constant=True))
    assert plain != constant


def test_the_key_of_a_task_names_the_machine_too() -> None:
    dag = ComputeDAG.of(matmul(8, 9, 10))
    other = ComputeDAG.of(matmul(80, 90, 100))
    v4, v3 = Target.parse("x86-64-v4"), Target.parse("x86-64-v3")
    task = Task(dag, v4, 2)
    assert task.class_key == Task(other, v4, 1, reuse_distance_bytes=1 << 27).class_key
    others = [Task(dag, v3, 2), Task(dag, v4, 2, precision="strict")]
    assert len({task.class_key, *(t.class_key for t in others)}) == 3
