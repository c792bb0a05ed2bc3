"""Whole small networks: what becomes one call, and that the calls compute what onnxruntime does."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from ansorpy.graph import Network
from ansorpy.ir.analysis.similarity import class_hash
from tests.frontend.models import graph_model, node, operator_model
from tests.graph.executor import (
    Array,
    assert_same_as_onnxruntime,
    compiled,
    random_feeds,
    run_network,
)
from tests.graph.light_models import LIGHT, light_model
from tests.graph.nets import Net


def checked(model: ModelProto) -> Network:
    return assert_same_as_onnxruntime(model, np.random.default_rng(23))


def titles(network: Network) -> list[str]:
    return [call.name for call in network.calls]


def test_a_residual_block_takes_batch_norm_shortcut_and_relu_into_its_convolutions() -> None:
    net = Net(x=(1, 8, 7, 5))
    a = net.relu(net.batch_norm(net.conv("x", 8, 8, 3), 8))
    b = net.batch_norm(net.conv(a, 8, 8, 1, bias=False), 8)
    y = net.op("GlobalAveragePool", net.relu(net.op("Add", b, a)))
    network = checked(net.model(y))
    assert titles(network) == [
        "conv3x3_add_relu_from_nchw_7x5x8",
        "conv1x1_add_add_relu_7x5x8",
        "reduce_sum_mul_1x1x8",
    ]


def test_a_projection_shortcut_leaves_the_earlier_convolution_alone() -> None:
    net = Net(x=(1, 6, 8, 8))
    x = net.relu(net.conv("x", 6, 6, 3))
    a = net.conv(x, 6, 12, 1, strides=[2, 2], pads=[0] * 4)
    b = net.conv(x, 6, 12, 3, strides=[2, 2])
    network = checked(net.model(net.op("GlobalMaxPool", net.relu(net.op("Add", a, b)))))
    assert titles(network)[1:3] == ["conv1x1s2_add_4x4x12", "conv3x3s2_add_add_relu_4x4x12"]


def test_branches_of_blockable_channels_concatenate_by_blocks() -> None:
    net = Net(x=(1, 4, 5, 7))
    x = net.relu(net.conv("x", 4, 16))
    parts = [net.relu(net.conv(x, 16, co, k)) for co, k in ((32, 1), (24, 3), (40, 1))]
    y = net.relu(net.batch_norm(net.op("Concat", *parts, axis=1), 96))
    network = checked(net.model(net.op("GlobalAveragePool", y)))
    concat = network.calls[-2]
    assert concat.name == "concat_mul_add_relu_5x7x96"
    assert concat.dag.outputs[0].shape == (35, 12, 8)


def test_branches_of_odd_channels_concatenate_by_channels() -> None:
    net = Net(x=(2, 4, 5, 7))
    parts = [net.conv("x", 4, co, 3) for co in (3, 5)]
    y = net.relu(net.op("Concat", *parts, axis=1))
    network = checked(net.model(net.op("GlobalAveragePool", y)))
    assert network.calls[-2].dag.outputs[0].shape == (2 * 5 * 7, 8)


def test_a_channel_shuffle_is_read_through_by_the_next_padded_convolution() -> None:
    net = Net(x=(1, 12, 5, 6))
    a = net.relu(net.conv("x", 12, 24, 1, group=3))
    b = net.conv(net.shuffle(a, 24, 5, 6, 3), 24, 24, 3, group=24)
    c = net.relu(net.op("Add", net.conv(b, 24, 24, 1, group=3), a))
    network = checked(net.model(net.op("GlobalAveragePool", c)))
    assert titles(network) == [
        "groupconv1x1_add_relu_from_nchw_5x6x24",
        "shuffle_groupconv3x3_add_5x6x24",
        "groupconv1x1_add_add_relu_5x6x24",
        "reduce_sum_mul_1x1x24",
    ]


def test_an_identity_shortcut_around_a_grouped_pointwise_convolution() -> None:
    net = Net(x=(1, 12, 5, 6))
    x = net.relu(net.conv("x", 12, 12, 3))
    y = net.relu(net.op("Add", net.conv(x, 12, 12, 1, group=3), x))
    network = checked(net.model(net.op("GlobalAveragePool", y)))
    call = network.calls[1]
    assert call.inputs[0] == call.inputs[1], "one value under two shapes"
    assert [p.shape for p in call.dag.args[:2]] == [(30, 12), (30, 3, 4)]


def test_a_preactivation_is_one_elementwise_call() -> None:
    net = Net(x=(1, 6, 6, 6))
    a = net.op("MaxPool", net.relu(net.conv("x", 6, 6, 3)), kernel_shape=[2, 2])
    scaled = net.op("Mul", net.batch_norm(a, 6), net.normal(6, 1, 1))
    b = net.relu(net.op("Add", scaled, net.normal(6, 1, 1)))
    y = net.conv(b, 6, 4)
    z = net.conv(b, 6, 4, 3)
    network = checked(net.model(net.op("GlobalAveragePool", net.op("Add", y, z))))
    assert "maxpool2x2_mul_add_relu_5x5x6" in titles(network)


def test_arithmetic_before_a_padded_convolution_joins_its_padding_stage() -> None:
    net = Net(x=(1, 6, 6, 6))
    a = net.op("Concat", net.conv("x", 6, 6, 3), net.conv("x", 6, 6, 1), axis=1)
    y = net.conv(net.relu(a), 12, 4, 3)
    z = net.conv(a, 12, 4, 1)
    network = checked(net.model(net.op("GlobalAveragePool", net.op("Add", y, z))))
    assert "relu_conv3x3_add_6x6x4" in titles(network)


def test_a_flatten_before_a_gemm_costs_no_transpose() -> None:
    net = Net(x=(2, 3, 5, 4))
    a = net.relu(net.conv("x", 3, 6, 3))
    network = checked(net.model(net.gemm(net.op("Flatten", a), 6 * 20, 7)))
    assert titles(network) == ["conv3x3_add_relu_from_nchw_2x5x4x6", "matmul_add_2x7"]


def test_a_transposed_input_is_read_in_place() -> None:
    for pads in ([1] * 4, [0] * 4):
        net = Net(x=(1, 3, 5, 4))
        y = net.op("GlobalMaxPool", net.conv("x", 3, 6, 3, pads=pads))
        stages = [op.name for op in checked(net.model(y)).calls[0].dag.computes]
        assert stages == (["pad", "conv", "add"] if any(pads) else ["conv", "add"])


def test_a_shuffle_before_an_unpadded_convolution_is_done_once() -> None:
    net = Net(x=(1, 12, 5, 6))
    a = net.shuffle(net.relu(net.conv("x", 12, 12, 1)), 12, 5, 6, 3)
    network = checked(net.model(net.op("GlobalMaxPool", net.conv(a, 12, 8, 3, pads=[0] * 4))))
    assert [op.name for op in network.calls[1].dag.computes] == ["shuffle", "conv", "add"]


def test_end_padding_that_no_window_reaches_is_not_made() -> None:
    net = Net(x=(1, 3, 8, 8))
    a = net.relu(net.conv("x", 3, 4, 1))
    y = net.conv(a, 4, 4, 3, pads=[1, 1, 1, 1], strides=[2, 2])
    network = checked(net.model(net.op("GlobalMaxPool", y)))
    assert network.calls[1].dag.computes[0].shape == (1, 9, 9, 4)


def test_arithmetic_is_not_repeated_in_an_unpadded_convolution() -> None:
    net = Net(x=(1, 6, 6, 6))
    a = net.relu(net.op("MaxPool", net.conv("x", 6, 6, 3), kernel_shape=[2, 2]))
    b = net.op("Concat", a, a, axis=1)
    y = net.conv(net.op("Tanh", net.op("Add", b, net.normal(12, 1, 1))), 12, 8)
    network = checked(net.model(net.op("GlobalMaxPool", y)))
    assert titles(network)[-2:] == ["conv1x1_add_5x5x8", "reduce_max_1x1x8"]


def test_a_flatten_that_is_read_otherwise_restores_the_model_order() -> None:
    net = Net(x=(2, 3, 5, 4))
    flat = net.op("Flatten", net.relu(net.conv("x", 3, 6, 3)))
    network = checked(net.model(net.gemm(flat, 6 * 20, 7), net.op("Tanh", flat)))
    assert "transpose_2x6x5x4" in titles(network)


def test_a_channels_last_model_needs_no_transpose_at_all() -> None:
    net = Net(x=(1, 5, 4, 8))
    a = net.conv(net.op("Transpose", "x", perm=[0, 3, 1, 2]), 8, 6, 3)
    network = checked(net.model(net.op("Transpose", net.relu(a), perm=[0, 2, 3, 1])))
    assert titles(network) == ["conv3x3_add_relu_5x4x6"]


def test_a_gate_of_one_value_a_channel_broadcasts() -> None:
    net = Net(x=(2, 6, 5, 7))
    a = net.relu(net.conv("x", 6, 6, 3))
    gate = net.op("Sigmoid", net.conv(net.op("GlobalAveragePool", a), 6, 6))
    checked(net.model(net.op("GlobalMaxPool", net.op("Mul", a, gate))))


def test_lower_rank_operands_follow_the_layout() -> None:
    net = Net(x=(1, 3, 5, 4), b=(4,))
    a = net.op("Mul", net.op("Add", net.conv("x", 3, 6, 3), "b"), net.normal(5, 1))
    b = net.op("ReduceMax", a, axes=[1], keepdims=0)
    checked(net.model(b, net.op("Softmax", net.op("Slice", a, *(
        net.constant(v, np.int64) for v in ([1], [5], [1])
    )), axis=1)))  # fmt: skip


def test_an_attention_block_matches() -> None:
    net = Net(x=(2, 6, 8))
    q, k, v = (net.op("MatMul", "x", net.normal(8, 8)) for _ in range(3))
    heads = [net.reshape(t, 0, 0, 2, 4) for t in (q, k, v)]
    q, v = (net.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (heads[0], heads[2]))
    k = net.op("Transpose", heads[1], perm=[0, 2, 3, 1])
    scores = net.op("Softmax", net.op("Mul", net.op("MatMul", q, k), net.constant(0.5)))
    mixed = net.op("Transpose", net.op("MatMul", scores, v), perm=[0, 2, 1, 3])
    checked(net.model(net.op("Add", "x", net.reshape(mixed, 0, 0, 8))))


def test_a_value_that_is_an_output_and_read_further_stays_a_call_of_its_own() -> None:
    net = Net(x=(1, 3, 4, 4))
    a = net.conv("x", 3, 4, 3)
    b = net.relu(a)
    checked(net.model(b, a, net.reshape(b, 4, 16)))


def test_two_outputs_of_the_same_value_are_both_written() -> None:
    net = Net(x=(3, 5))
    a = net.relu("x")
    network = checked(net.model(a, net.op("Identity", a), net.reshape("x", 15)))
    assert len([t for t in titles(network) if t.startswith("copy_")]) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int32, bool])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_outputs_that_are_constants_are_copied(dtype: type, shape: tuple[int, ...]) -> None:
    value: Array = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    nodes = [
        node("Relu", ["x"], ["y"]),
        node("Identity", ["held"], ["same"]),
        node("Shape", ["held"], ["shape"]),
    ]
    names, types = ["y", "same", "shape", "held"], {"same": kind, "held": kind, "shape": 7}
    model = graph_model(nodes, {"x": (2,)}, names, {"held": value}, types=types)
    copies = [title for title in titles(checked(model)) if title.startswith("copy_")]
    assert copies == ["copy_same", *(["copy_shape"] if shape else []), "copy_held"]


def test_an_output_may_be_an_input_and_have_its_name() -> None:
    model = operator_model("Relu", [(3, 5)])
    model.graph.output.append(model.graph.input[0])
    network = checked(model)
    assert [t.name for t in network.results] == ["y0", "x0"]
    assert len({*network.values}) == 3


def test_outputs_with_the_names_of_inputs_are_apart() -> None:
    model = graph_model([node("Neg", ["x"], ["y"])], {"x": (2,), "x'": (3,)}, ["y"])
    model.graph.output.extend(model.graph.input)
    assert len(checked(model).values) == 5


def test_an_output_without_elements_needs_no_call() -> None:
    net = Net(x=(3, 5))
    nothing = net.op("Slice", "x", *(net.constant([v], np.int64) for v in (2, 2)))
    network = checked(net.model(net.relu("x"), nothing, net.op("Transpose", nothing)))
    assert titles(network) == ["relu_3x5"]
    assert [t.shape for t in network.outputs] == [(3, 5), (0, 5), (5, 0)]


def test_equal_layers_are_one_workload() -> None:
    net = Net(x=(1, 8, 6, 6))
    x = net.relu(net.conv("x", 8, 8, 1))
    for _ in range(3):
        x = net.relu(net.conv(x, 8, 8, 3))
    network = checked(net.model(net.op("GlobalMaxPool", x)))
    assert sorted(w.weight for w in network.workloads()) == [1, 1, 3]


def test_the_arena_never_overlaps_live_values() -> None:
    net = Net(x=(1, 4, 9, 9))
    a = net.relu(net.conv("x", 4, 8, 3))
    b = net.relu(net.conv(a, 8, 8, 3))
    c = net.relu(net.conv(b, 8, 8, 3))
    network = checked(net.model(net.op("GlobalMaxPool", net.op("Add", a, net.conv(c, 8, 8, 3)))))
    feeds = random_feeds(network, np.random.default_rng(1))
    apart = {name: n * network.arena.bytes for n, name in enumerate(network.arena.offsets)}
    for one, other in zip(
        run_network(network, feeds), run_network(network, feeds, apart), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_single_operator_network_reads_and_writes_the_callers_buffers() -> None:
    network = compiled(operator_model("Relu", [(3, 5)]))
    assert (network.calls[0].inputs, network.calls[0].outputs) == (("x0",), ("y0",))
    assert network.arena.bytes == 0


@pytest.fixture(scope="module", params=LIGHT)
def light(request: pytest.FixtureRequest) -> tuple[str, Network]:
    """Name and partition of each light network in turn; only one is in memory."""
    return request.param, compiled(light_model(request.param))


def test_light_networks_partition_without_leftovers(light: tuple[str, Network]) -> None:
    _, network = light
    labels = {part for title in titles(network) for part in title.split("_")}
    assert "transpose" not in {t.split("_")[0] for t in titles(network)[1:]}, "no inner transpose"
    assert not labels & {"sub", "div"}, "scales are folded"
    known = {*network.values, *(i.name for i in network.inputs)}
    assert all(set(call.inputs) <= known for call in network.calls)


CALLS = {
    "bvlc_alexnet": (14, 14, 10), "densenet121": (129, 75, 11), "inception_v1": (66, 62, 12),
    "inception_v2": (74, 62, 14), "resnet50": (57, 32, 12), "shufflenet": (59, 27, 13),
    "squeezenet": (31, 23, 7), "vgg19": (25, 18, 6), "zfnet512": (14, 13, 9),
}  # fmt: skip
"""Calls, tasks and classes of similar tasks, at most."""


def test_light_networks_have_no_more_calls_than_they_need(light: tuple[str, Network]) -> None:
    name, network = light
    calls, workloads, _ = CALLS[name]
    assert len(network.calls) <= calls
    assert len(network.workloads()) <= workloads
    assert sum(w.weight for w in network.workloads()) == len(network.calls)


@pytest.mark.parametrize("name", ["shufflenet", "squeezenet"])
def test_light_networks_with_random_weights_equal_onnxruntime(name: str) -> None:
    model = light_model(name, seed=7)
    last = model.graph.node[-1]
    assert last.op_type == "Softmax"
    model.graph.output[0].name = last.input[0]
    del model.graph.node[-1]
    checked(model)


def test_tasks_of_real_networks_fall_into_classes(light: tuple[str, Network]) -> None:
    name, network = light
    workloads = network.workloads()
    found: dict[str, list[str]] = {}
    for workload in workloads:
        title = workload.name.rpartition("_")[0]
        found.setdefault(class_hash(workload.dag), []).append(title)
    assert len(found) <= CALLS[name][2]
    assert all(len(set(titles)) == 1 for titles in found.values())


def test_a_sum_of_hundreds_is_several_calls() -> None:
    names = [f"x{n}" for n in range(300)]
    net = Net()
    net.inputs.update(dict.fromkeys(names, (3, 5)))
    network = checked(net.model(net.op("Sum", *names)))
    assert [len(call.inputs) for call in network.calls] == [33] * 9 + [12]
