"""Weights in blocks of few bits beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.microsoft.beside import Array, assert_as_onnxruntime, model_of, normal
from tests.graph.executor import run_network


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["none", "packed", "floats"])
@pytest.mark.parametrize("rows", [64, 40])
def test_matmul_nbits(bits: int, zeros: str, rows: int) -> None:
    rng = np.random.default_rng(bits)
    columns, block = 5, 32
    blocks = -(-rows // block)
    operands = {
        "a": normal(0, 3, rows),
        "b": rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
        "scales": normal(1, columns, blocks),
        "zeros": {
            "none": None,
            "packed": rng.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8),
            "floats": normal(3, columns, blocks),
        }[zeros],
    }
    if zeros == "floats" and bits == 8:
        pytest.skip("onnxruntime has no such kernel")
    held = [name for name, array in operands.items() if array is not None and name != "a"]
    assert_as_onnxruntime(
        "MatMulNBits", operands, None, held, 1e-3, K=rows, N=columns, bits=bits, block_size=block
    )


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_stay_packed_for_any_number_of_rows(bits: int) -> None:
    """A program that is bound to them holds no more bytes than the model."""
    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, (20, 3, 4 * bits)).astype(np.uint8)
    operands = {"x": normal(0, 2, 90), "w": packed, "s": normal(1, 60)}
    model = model_of(
        "MatMulNBits", operands, {"y": TensorProto.FLOAT}, ["w", "s"],
        K=90, N=20, bits=bits, block_size=32,
    )  # fmt: skip
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    (call,) = partition(optimize(load(model, dims={"rows": (1, 9)}))).calls
    held = [array for array in call.constants.values() if array.size > 60]
    assert [array.dtype for array in held] == [np.uint8]
    assert held[0].nbytes == 20 * -(-90 * bits // 8) or held[0].nbytes == 20 * 90 * bits // 8
    read = {op for op in call.dag.args if op.name in call.constants}
    assert call.dag.constant_ops <= read  # nothing is made of them ahead


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("columns", [5, 40])
def test_matmul_bnb4(columns: int, kind: int) -> None:
    rng = np.random.default_rng(kind)
    operands = {
        "a": normal(0, 3, 64),
        "b": rng.integers(0, 256, columns * 32).astype(np.uint8),
        "scales": rng.uniform(0.1, 0.5, columns * 2).astype(np.float32),
    }
    assert_as_onnxruntime(
        "MatMulBnb4", operands, None, ["b", "scales"], 1e-4,
        K=64, N=columns, block_size=32, quant_type=kind,
    )  # fmt: skip


def test_blocks_of_4_bit_floats_end_with_rows() -> None:
    operands = {
        "a": normal(0, 3, 48), "b": np.zeros(5 * 24, np.uint8), "scales": normal(1, 8)
    }  # fmt: skip
    model = model_of(
        "MatMulBnb4", operands, {"y": TensorProto.FLOAT}, ["b", "scales"],
        K=48, N=5, block_size=32, quant_type=1,
    )  # fmt: skip
    with pytest.raises(UnsupportedModel, match="it must divide the 48 rows"):
        load(model)


def test_a_bias_is_added() -> None:
    rng = np.random.default_rng(0)
    operands = {
        "a": normal(0, 2, 3, 32), "b": rng.integers(0, 256, (7, 2, 8)).astype(np.uint8),
        "scales": normal(1, 7, 2), "zeros": None, "groups": None, "bias": normal(2, 7),
    }  # fmt: skip
    assert_as_onnxruntime(
        "MatMulNBits", operands, None, ["b", "scales", "bias"], 1e-3,
        K=32, N=7, bits=4, block_size=16,
    )  # fmt: skip


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_gather_block_quantized(bits: int, zeros: bool) -> None:
    rng = np.random.default_rng(0)
    operands = {
        "data": rng.integers(0, 256, (11, 48 * bits // 8)).astype(np.uint8),
        "indices": rng.integers(0, 11, (2, 3)),
        "scales": normal(1, 11, 3),
        "zeros": rng.integers(0, 256, (11, -(-3 * bits // 8))).astype(np.uint8) if zeros else None,
    }
    held = [name for name, array in operands.items() if array is not None and name != "indices"]
    assert_as_onnxruntime(
        "GatherBlockQuantized", operands, None, held, bits=bits, block_size=16, quantize_axis=1
    )


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
def test_rows_of_a_table_of_4_bits(kind: int, zeros: bool) -> None:
    """Elements of such a type are numbers themselves, while those in bytes are around 8."""
    rng = np.random.default_rng(0)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    low = -8 if kind == TensorProto.INT4 else 0
    operands = {
        "data": rng.integers(low, low + 16, (60, 48)).astype(dtype),
        "indices": rng.integers(0, 60, (2, 3)),
        "scales": normal(1, 60, 3),
        "zeros": rng.integers(low, low + 16, (60, 3)).astype(dtype) if zeros else None,
    }
    held = [name for name, array in operands.items() if array is not None and name != "indices"]
    assert_as_onnxruntime(
        "GatherBlockQuantized", operands, None, held, block_size=16, quantize_axis=1
    )


def test_weights_that_are_not_constant_are_refused() -> None:
    operands = {
        "a": normal(0, 3, 32), "b": np.zeros((5, 1, 16), np.uint8), "scales": normal(1, 5, 1)
    }  # fmt: skip
    model = model_of(
        "MatMulNBits", operands, {"y": TensorProto.FLOAT}, K=32, N=5, bits=4, block_size=32
    )
    with pytest.raises(UnsupportedModel, match="it must be a constant"):
        load(model)


def groups_in_any_order(bits: int, zeros: Array | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Operands and attributes of MatMulNBits, of 64 rows in groups of 16."""
    rng = np.random.default_rng(bits)
    operands = {
        "a": normal(0, 2, 3, 64),
        "b": rng.integers(0, 256, (5, 4, 2 * bits)).astype(np.uint8), "scales": normal(1, 5, 4),
        "zeros": zeros, "groups": rng.permutation(np.arange(64) // 16).astype(np.int32),
    }  # fmt: skip
    return operands, {"K": 64, "N": 5, "bits": bits, "block_size": 16}


def test_groups_of_rows_in_any_order() -> None:
    operands, given = groups_in_any_order(4, None)
    assert_as_onnxruntime("MatMulNBits", operands, None, ["b", "scales", "groups"], 1e-3, **given)


def test_groups_of_rows_have_zero_points() -> None:
    """onnxruntime does not support it of 8 bits, and reads no zero points of fewer."""
    zeros = np.random.default_rng(1).integers(0, 256, (5, 4)).astype(np.uint8)
    operands, given = groups_in_any_order(8, zeros)
    model = model_of(
        "MatMulNBits", operands, {"y": TensorProto.FLOAT}, ["b", "scales", "zeros", "groups"],
        **given,
    )  # fmt: skip
    (got,) = run_network(partition(optimize(load(model))), {"a": operands["a"]})
    groups, codes = operands["groups"], operands["b"].reshape(5, 64).astype(np.float32)
    weight = (codes - zeros[:, groups]) * operands["scales"][:, groups]
    np.testing.assert_allclose(got, operands["a"] @ weight.T, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("operator", ["MatMulNBits", "MatMulBnb4"])
def test_weights_times_a_vector(operator: str) -> None:
    blocks = (5, 2, 8) if operator == "MatMulNBits" else (80,)
    operands = {
        "a": normal(0, 32), "b": np.random.default_rng(1).integers(0, 256, blocks).astype(np.uint8),
        "scales": np.abs(normal(2, *blocks[:2]) if len(blocks) == 3 else normal(2, 10)),
    }  # fmt: skip
    kind: dict[str, Any] = {"bits": 4} if operator == "MatMulNBits" else {"quant_type": 1}
    assert_as_onnxruntime(
        operator, operands, None, ["b", "scales"], 1e-3, K=32, N=5, block_size=16, **kind
    )


@pytest.mark.parametrize(
    ("groups", "more", "said"),
    [
        (np.zeros(32, np.int32), {}, "give 16 rows of each group"),
        (None, {"weight_prepacked": 1}, "store the weights as they are quantized"),
    ],
)
def test_other_arrangements_of_weights_are_refused(
    groups: Array | None, more: dict[str, Any], said: str
) -> None:
    operands = {
        "a": normal(0, 3, 32), "b": np.zeros((5, 2, 8), np.uint8), "scales": normal(1, 5, 2),
        "zeros": None, "groups": groups,
    }  # fmt: skip
    held = ["b", "scales", *(["groups"] if groups is not None else [])]
    model = model_of(
        "MatMulNBits", operands, {"y": TensorProto.FLOAT}, held, K=32, N=5, bits=4, block_size=16,
        **more,
    )  # fmt: skip
    with pytest.raises(UnsupportedModel, match=said):
        load(model)


@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT4E2M1])
def test_rows_of_a_table_of_narrow_floats(kind: int, block: int) -> None:
    """Without a size, each row is a block."""
    table = normal(0, 60, 48).astype(helper.tensor_dtype_to_np_dtype(kind))
    scales = normal(1, 60, 3 if block else 1)
    places = np.random.default_rng(0).integers(0, 60, (2, 3))
    operands = {"data": table, "indices": places, "scales": scales}
    model = model_of(
        "GatherBlockQuantized", operands, {"y": TensorProto.FLOAT}, ["data", "scales"],
        block_size=block,
    )  # fmt: skip
    (got,) = run_network(partition(optimize(load(model))), {"indices": places})
    want = table.astype(np.float32) * scales.repeat(48 // scales.shape[1], axis=1)
    np.testing.assert_allclose(got, want[places], rtol=1e-6)
