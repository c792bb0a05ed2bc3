"""Resize and Upsample in all their forms, with random sizes, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.frontend.onnx.images.coordinates import COORDINATES
from ansorpy.graph.ops import Repeat, Resample
from tests.budget import some
from tests.frontend.models import operator_model
from tests.graph.executor import assert_same_as_onnxruntime, compiled, run_network
from tests.graph.nets import Net
from tests.peer import peer

ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def count(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high))


def resized(
    shape: tuple[int, ...], to: list[int] | list[float], opset: int = 19, **attributes: Any
) -> ModelProto:
    """Floats in *to* are scales, integers sizes."""
    region = attributes.pop("region", None)
    roi = None if region is None else np.asarray(region, np.float32)
    by_size = isinstance(to[0], int)
    scales = None if by_size else np.asarray(to, np.float32)
    constants = [roi, scales, np.asarray(to, np.int64) if by_size else None]
    return operator_model("Resize", [shape], constants, opset=opset, **attributes)


@pytest.mark.parametrize("seed", some(range(6)))
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_random_sizes(seed: int, mode: str, coordinates: str) -> None:
    rng = np.random.default_rng([seed, len(mode), COORDINATES.index(coordinates)])
    shape = (1, count(rng, 1, 4), count(rng, 3, 12), count(rng, 3, 12))
    given: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        given["nearest_mode"] = str(rng.choice(ROUNDINGS))
    if mode == "cubic":
        given |= {"exclude_outside": count(rng, 0, 2), "cubic_coeff_a": -0.5}
    if coordinates == "tf_crop_and_resize":
        given |= {"region": [0, 0, 0.21, -0.33, 1, 1, 1.37, 0.83], "extrapolation_value": 7.0}
    # What lies halfway between two elements may be rounded either way: no such scales.
    to: list[Any] = [1.0, 1.0, *map(float, rng.choice([0.41, 0.77, 1.43, 2.31, 3.3], 2))]
    if mode != "nearest" and rng.random() < 0.5:
        to = [*shape[:2], *(e + count(rng, 1, 15) for e in shape[2:])]
    opset = 13 if coordinates == "tf_half_pixel_for_nn" else 19
    if coordinates == "align_corners":  # onnxruntime does not scale by fractions as onnx does
        to = [*shape[:2], *(int(e * 1.7) for e in shape[2:])]
    assert_same_as_onnxruntime(resized(shape, to, opset=opset, **given), rng)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("to", [[3, 4], [17, 5], [4, 25]])
@pytest.mark.parametrize("exclude_outside", [0, 1])
def test_antialiasing(mode: str, to: list[int], exclude_outside: int) -> None:
    model = resized((1, 2, 13, 11), [1, 2, *to], mode=mode, antialias=1,
                    exclude_outside=exclude_outside)  # fmt: skip
    assert_same_as_onnxruntime(model, np.random.default_rng(1))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_the_aspect_ratio_may_be_kept(policy: str) -> None:
    model = resized((1, 2, 7, 5), [10, 11], axes=[2, 3], mode="linear",
                    keep_aspect_ratio_policy=policy)  # fmt: skip
    assert_same_as_onnxruntime(model, np.random.default_rng(1))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[2.0, 3.0], [0.5, 0.6], [1.7, 1.0]])
@pytest.mark.parametrize("opset", [7, 9, 10])
def test_older_forms(mode: str, scales: list[float], opset: int) -> None:
    given = [1.0, 1.0, *scales]
    if opset == 7:
        model = operator_model("Upsample", [(1, 2, 5, 7)], opset=7, mode=mode, scales=given)
    else:
        name = "Upsample" if opset == 9 else "Resize"
        held = [np.asarray(given, np.float32)]
        model = operator_model(name, [(1, 2, 5, 7)], held, opset=opset, mode=mode)
    if opset < 10 and min(scales) < 1:
        pytest.skip("onnxruntime refuses to shrink here")
    assert_same_as_onnxruntime(model, np.random.default_rng(1))


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32"])
@pytest.mark.parametrize("opset", [9, 19])
def test_integers_are_interpolated(kind: str, opset: int) -> None:
    """As in networks of integers that onnxruntime's quantizer writes."""
    code = TensorProto.DataType.Value(kind.upper())
    held: list[Any] = [np.asarray([1, 1, 1.7, 2.3], np.float32)]
    name, operands = ("Upsample", held) if opset == 9 else ("Resize", [None, *held])
    types = {"x0": code, "y0": code}
    model = operator_model(name, [(1, 2, 5, 4)], operands, opset, types=types, mode="linear")
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    x = np.random.default_rng(2).integers(low, high, (1, 2, 5, 4)).astype(kind)
    if kind == "int32":
        x //= 1 << 12  # onnxruntime computes in float32
    (got,) = run_network(compiled(model), {"x0": x})
    (want,) = peer(model).run(None, {"x0": x})
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.astype(np.int64), want, rtol=0, atol=1)


@pytest.mark.parametrize(
    ("row", "scale", "wanted"),
    [
        ([0, 1], 2.0, [0, 0, 0, 1]),  # 0.75 is cut
        ([101] * 5, 3.3, [101] * 16),  # in float32, some would be a little less, and cut
    ],
)
def test_interpolated_integers_are_cut(row: list[int], scale: float, wanted: list[int]) -> None:
    types = {"x0": TensorProto.INT32, "y0": TensorProto.INT32}
    operands = [None, np.asarray([1, scale], np.float32)]
    model = operator_model("Resize", [(1, len(row))], operands, 19, types=types, mode="linear")
    x = np.asarray([row], np.int32)
    (got,) = run_network(compiled(model), {"x0": x})
    (expected,) = peer(model).run(None, {"x0": x})
    assert got.tolist() == expected.tolist() == [wanted]


def test_one_and_three_spatial_axes() -> None:
    for shape, to in (((2, 3, 5), [2, 3, 9]), ((1, 2, 3, 4, 5), [1, 2, 6, 5, 8])):
        assert_same_as_onnxruntime(resized(shape, to, mode="linear"), np.random.default_rng(1))


def test_a_whole_nearest_scale_is_a_repetition_that_its_reader_does() -> None:
    net = Net(x=(1, 3, 6, 4))
    small = net.relu(net.conv("x", 3, 16, 3, strides=(2, 2)))
    scales = net.constant([1, 1, 2, 2])
    up = net.op("Resize", small, "", scales, coordinate_transformation_mode="asymmetric",
                nearest_mode="floor")  # fmt: skip
    model = net.model(net.conv(up, 16, 8, 3))
    assert any(isinstance(n.op, Repeat) for n in load(model).nodes)
    assert not any(isinstance(n.op, Resample) for n in load(model).nodes)
    network = assert_same_as_onnxruntime(model, np.random.default_rng(1))
    assert [c.name for c in network.calls if "repeat" in c.name] == ["repeat_conv3x3_add_6x4x8"]


def test_what_grows_into_an_output_is_turned_while_it_is_small() -> None:
    net = Net(x=(1, 3, 6, 5))
    small = net.conv("x", 3, 4, 3)
    sizes = net.constant([1, 4, 30, 20], np.int64)
    model = net.model(net.op("Resize", small, "", "", sizes, mode="linear"))
    network = assert_same_as_onnxruntime(model, np.random.default_rng(1))
    starts = [c.name.rsplit("_", 1)[0] for c in network.calls]
    assert starts == ["conv3x3_add_from_nchw", "transpose_resample", "resample"]
    assert network.calls[-1].dag.outputs[0].shape == (1, 4, 30, 20)


@pytest.mark.parametrize(
    ("arguments", "blame"),
    [
        ({"mode": "area"}, "mode=area"),
        ({"coordinate_transformation_mode": "guess"}, "coordinate_transformation_mode=guess"),
        ({"nearest_mode": "guess"}, "nearest_mode=guess"),
    ],
)
def test_what_is_not_known_is_named(arguments: dict[str, Any], blame: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        compiled(resized((1, 1, 4, 4), [1, 1, 6, 7], **arguments))
    assert blame in caught.value.rows[0].attribute
