"""Every family's definition is what the peers compute: small random sizes, onnx's evaluator."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from benchmarks.ops.case import Case
from benchmarks.ops.families.attention import Attention, TransposedBatchMatmul
from benchmarks.ops.families.capsule import CapsuleConv2d
from benchmarks.ops.families.conv1d import Conv1d
from benchmarks.ops.families.conv2d import Conv2d
from benchmarks.ops.families.conv3d import Conv3d
from benchmarks.ops.families.conv_layer import ConvLayer
from benchmarks.ops.families.depthwise import DepthwiseConv2d
from benchmarks.ops.families.elementwise import Gelu, Softmax
from benchmarks.ops.families.grouped import GroupedConv2d
from benchmarks.ops.families.matmul import Matmul
from benchmarks.ops.families.norms import LayerNorm, MatrixNorm
from benchmarks.ops.families.projection import Projection
from benchmarks.ops.families.transposed import TransposedConv2d
from benchmarks.ops.suite import cases

SMALL: list[Case] = [
    Conv1d("C1D", (11,), 3, 5, 3, 2, 1),
    Conv1d("C1D", (9,), 2, 4, 5, 1, 2, dilation=2, batch=2),
    Conv2d("C2D", (7, 9), 3, 5, 3, 1, 1, batch=2),
    Conv2d("C2D", (8, 6), 4, 3, 1),
    Conv2d("DIL", (9, 8), 3, 4, 3, 2, 1, dilation=2),
    Conv3d("C3D", (4, 5, 6), 2, 3, 3, 2, 1),
    GroupedConv2d("GRP", (6, 5), 8, 12, 3, 2, 1, batch=2, parts=4),
    DepthwiseConv2d("DEP", (7, 6), 5, 5, 3, 2, 1, batch=2),
    TransposedConv2d("T2D", (4, 3), 5, 3, 4, 2, 1),
    TransposedConv2d("T2D", (3, 4), 2, 3, 3, 2, 1, batch=2),
    TransposedConv2d("T2D", (3, 3), 2, 2, 5, 3),
    CapsuleConv2d("CAP", (5, 4), 2, 3, 3, 2, 1, batch=2),
    ConvLayer("ConvLayer", (6, 5), 3, 4, 3, 1, 1),
    Matmul("GMM", 5, 7, 3),
    Matmul("GMM", 4, 3, 6, 2),
    Projection("PROJ", 3, 5, 4),
    TransposedBatchMatmul("TBG", 5, 2, 3, 2),
    Attention("ATT", 5, 2, 4),
    Softmax("SOFTMAX", (2, 3, 7)),
    LayerNorm("LN", 3, 11),
    MatrixNorm("NRM", 5, 7, 2),
    MatrixNorm("NRM", 3, 5),
    Gelu("GELU", (3, 8)),
]
each_small = pytest.mark.parametrize("case", SMALL, ids=lambda c: c.name)


def ours(case: Case) -> np.ndarray:
    [out] = run_dag(case.dag, case.values(0), DType.FLOAT64)
    return np.asarray(out)


def test_every_family_of_the_suite_is_here() -> None:
    assert {type(case) for case in cases()} == {type(case) for case in SMALL}


@each_small
def test_equals_the_onnx_evaluator(case: Case) -> None:
    expected = ours(case)
    feeds = {n: a for n, a in case.peer_values(0).items() if n in run_time_names(case)}
    for model in case.onnx_models(0):
        [theirs] = ReferenceEvaluator(model).run(["out"], feeds)
        assert_same(case.from_peer(np.asarray(theirs)), expected)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is only used by benchmarks")
@each_small
def test_equals_torch(case: Case) -> None:
    import torch

    values = {name: torch.from_numpy(a) for name, a in case.peer_values(0).items()}
    for call in case.torch_calls(torch, values):
        got = case.from_peer(call().contiguous().numpy())
        assert_same(got, ours(case))


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)


def run_time_names(case: Case) -> set[str]:
    return {op.name for op in case.dag.args if not op.constant}
