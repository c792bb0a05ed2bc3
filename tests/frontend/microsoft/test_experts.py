"""Mixtures of experts beside onnxruntime, or beside their definition where it has no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from scipy.special import softmax

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.graph.ops import Computed
from ansorpy.graph.passes.without_routines import without_routines
from tests.frontend.microsoft.beside import Array, assert_as_onnxruntime, model_of, normal
from tests.frontend.sized import assert_same_at, import_sized
from tests.graph.executor import run_network

EXPERTS, WIDTH, INNER = 4, 32, 64


def operands_of(rows: int, *, fused: int = 1, biases: bool = True) -> dict[str, Any]:
    """Operands of MoE without a third layer."""
    return {
        "x": normal(0, rows, WIDTH), "router": normal(1, rows, EXPERTS),
        "w1": 0.3 * normal(2, EXPERTS, fused * INNER, WIDTH),
        "b1": 0.3 * normal(3, EXPERTS, fused * INNER) if biases else None,
        "w2": 0.3 * normal(4, EXPERTS, WIDTH, INNER),
        "b2": 0.3 * normal(5, EXPERTS, WIDTH) if biases else None,
    }  # fmt: skip


def held(operands: dict[str, Any]) -> list[str]:
    return [n for n, array in operands.items() if array is not None and n not in ("x", "router")]


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("rows", [1, 3, 50])
def test_activations(activation: str, rows: int) -> None:
    """Few rows are blocks of their own; of many, each expert has blocks of several."""
    operands = operands_of(rows)
    assert_as_onnxruntime(
        "MoE", operands, None, held(operands), 1e-4, k=2, activation_type=activation
    )


@pytest.mark.parametrize("normalised", [0, 1])
@pytest.mark.parametrize("k", [1, 3])
def test_shares_of_experts(k: int, normalised: int) -> None:
    operands = operands_of(21, biases=False)
    operands = {n: array for n, array in operands.items() if n != "b2"}
    assert_as_onnxruntime(
        "MoE", operands, None, held(operands), 1e-4, k=k, normalize_routing_weights=normalised
    )


@pytest.mark.parametrize("given", [{}, {"activation_alpha": 1.702, "activation_beta": 1.0,
                                       "swiglu_limit": 0.8}])  # fmt: skip
def test_swiglu(given: dict[str, Any]) -> None:
    operands = operands_of(9, fused=2)
    operands["x"] = operands["x"].reshape(3, 3, WIDTH)
    assert_as_onnxruntime(
        "MoE", operands, None, held(operands), 1e-4, k=2, activation_type="swiglu",
        swiglu_fusion=1, normalize_routing_weights=1, **given,
    )  # fmt: skip


@pytest.mark.parametrize("activation", ["silu", "swiglu"])
def test_a_third_layer_gates(activation: str) -> None:
    """onnxruntime has it on GPUs only."""
    operands = operands_of(13, biases=False)
    w3 = 0.3 * normal(6, EXPERTS, INNER, WIDTH)
    operands |= {"w3": w3}
    attributes: dict[str, Any] = {
        "k": 2, "activation_type": activation, "normalize_routing_weights": 1,
    }  # fmt: skip
    model = model_of("MoE", operands, {"y": TensorProto.FLOAT}, held(operands), **attributes)
    feeds = {name: operands[name] for name in ("x", "router")}
    (got,) = run_network(partition(optimize(load(model))), feeds)
    inner = np.einsum("tw,eiw->tei", operands["x"], operands["w1"])
    gated = inner / (1 + np.exp(-inner)) * np.einsum("tw,eiw->tei", operands["x"], w3)
    whole = np.einsum("tei,ewi->tew", gated, operands["w2"])
    np.testing.assert_allclose(got, _mixed(whole, operands["router"], 2), rtol=1e-4, atol=1e-4)


def _mixed(whole: Array, router: Array, k: int) -> Array:
    chosen = np.argsort(-router, axis=1)[:, :k]
    share = softmax(np.take_along_axis(router, chosen, 1), axis=1)
    mixed: Array = np.sum(np.take_along_axis(whole, chosen[..., None], 1) * share[..., None], 1)
    return mixed


def test_machines_without_routines_compute_blocks_by_formulas() -> None:
    operands = operands_of(50)
    model = model_of("MoE", operands, {"y": TensorProto.FLOAT}, held(operands), k=2)
    graph = load(model)
    plain = without_routines(graph)
    assert not any(isinstance(node.op, Computed) for node in plain.nodes)
    feeds = {name: operands[name] for name in ("x", "router")}
    want, got = (run_network(partition(optimize(one)), feeds)[0] for one in (graph, plain))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_all_rows_may_go_to_one_expert() -> None:
    operands = operands_of(40)
    operands["router"][:, 2] += 100
    assert_as_onnxruntime("MoE", operands, None, held(operands), 1e-4, k=1)


def test_any_number_of_rows() -> None:
    operands = operands_of(37)
    model = model_of("MoE", operands, {"y": TensorProto.FLOAT}, held(operands), k=2)
    for info in model.graph.input:
        info.type.tensor_type.shape.dim[0].dim_param = "rows"
    sizes = [{"rows": rows} for rows in (1, 6, 37)]
    assert_same_at(model, import_sized(model, rows=(1, 64)), np.random.default_rng(0), sizes)


def packed_of(bits: int, block: int, zeros: bool) -> dict[str, Any]:
    """Operands of QMoE: each layer has weights, scales and biases, and perhaps zero points."""
    rng = np.random.default_rng(bits)
    operands: dict[str, Any] = {"x": normal(0, 11, WIDTH), "router": normal(1, 11, EXPERTS)}
    points: dict[str, Any] = {}
    for name, columns, rows in (("1", INNER, WIDTH), ("2", WIDTH, INNER)):
        blocks = rows // block if block else 1
        shape = (EXPERTS, columns, blocks) if block else (EXPERTS, columns)
        operands[f"w{name}"] = _bytes(rng, EXPERTS, columns, rows * bits // 8)
        operands[f"s{name}"] = rng.uniform(0.01, 0.03, shape).astype(np.float32) * 8 / 2**bits
        operands[f"b{name}"] = None if block else 0.3 * normal(3, EXPERTS, columns)
        last = -(-(blocks if block else columns) * bits // 8)
        points[f"z{name}"] = _bytes(rng, *shape[: 2 if block else 1], last)
    if zeros:
        operands |= {"w3": None, "s3": None, "b3": None, **points}
    return operands


def _bytes(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("bits", [4, 8])
def test_packed_weights(bits: int, block: int, zeros: bool) -> None:
    operands = packed_of(bits, block, zeros)
    given: dict[str, Any] = {"block_size": block} if block else {}
    assert_as_onnxruntime(
        "QMoE", operands, None, held(operands), 2e-2, k=2, expert_weight_bits=bits,
        activation_type="silu", **given,
    )  # fmt: skip


def test_layers_may_have_codes_of_other_bits() -> None:
    """As of a node whose layers all have as many."""
    operands = packed_of(8, 0, zeros=False)
    attributes: list[dict[str, Any]] = [
        {"expert_weight_bits": 8},
        {f"fc{n}_expert_weight_bits": 8 for n in (1, 2)},
    ]
    plain, own = (
        run_network(
            partition(optimize(load(model_of(
                "QMoE", operands, {"y": TensorProto.FLOAT}, held(operands), k=2, **given
            )))),
            {"x": operands["x"], "router": operands["router"]},
        )
        for given in attributes
    )  # fmt: skip
    np.testing.assert_allclose(own[0], plain[0])


@pytest.mark.parametrize("block", [0, 16])
def test_packed_weights_are_read_as_they_are_stored(block: int) -> None:
    """No call makes numbers of the weights of experts that no row goes to."""
    operands = packed_of(4, block, zeros=True)
    given: dict[str, Any] = {"block_size": block} if block else {}
    model = model_of("QMoE", operands, {"y": TensorProto.FLOAT}, held(operands), k=2, **given)
    network = partition(optimize(load(model)))
    shapes = [info.shape for info in network.values.values()]
    assert [s for s in shapes if len(s) == 3 and s[0] == EXPERTS] == []


@pytest.mark.parametrize("normalised", [0, 1])
def test_weights_of_a_router(normalised: int) -> None:
    operands = packed_of(8, 0, zeros=True) | {"z3": None, "shares": np.abs(normal(7, 11, EXPERTS))}
    constants = [name for name in held(operands) if name != "shares"]
    assert_as_onnxruntime(
        "QMoE", operands, None, constants, 2e-2, k=2, expert_weight_bits=8,
        normalize_routing_weights=normalised,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "advice"),
    [
        ({"activation_type": "tanh"}, "use one of gelu, identity, relu, silu, swiglu"),
        ({"use_sparse_mixer": 1}, "route by the largest scores"),
        ({"activation_type": "swiglu"}, "give fc3, or use 1 or 2"),
    ],
)
def test_what_is_refused(attributes: dict[str, Any], advice: str) -> None:
    operands = operands_of(3)
    model = model_of("MoE", operands, {"y": TensorProto.FLOAT}, held(operands), k=2, **attributes)
    with pytest.raises(UnsupportedModel, match=advice):
        load(model)
