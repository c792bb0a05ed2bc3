"""Images sampled between their pixels, cut into patches and regions, and put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.campaigns.networks.families.products import image, windows
from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Unstable, Value

__all__ = ["IMAGES"]

_SINGLE = np.dtype(np.float32)


def samples(net: Growing) -> None:
    """Samples of images and volumes: nearest, linear or cubic."""
    if net.opset < 20:  # in which there are only images
        return
    rank = net.one_of([2, 2, 3])
    n, c = net.count(1, 2), net.count(1, 3)
    x = net.new_input([n, c, *(net.count(2, 6) for _ in range(rank))], _SINGLE)
    far = net.one_of([1.3, 1.3, 6.0])
    places = net.given(net.uniform(-far, far, n, *(net.count(1, 5) for _ in range(rank)), rank)
                       .astype(_SINGLE))  # fmt: skip
    net.add(
        "GridSample", x, places, mode=net.one_of(["linear", "nearest", "cubic"][: 5 - rank]),
        padding_mode=net.one_of(["zeros", "border", "reflection"]),
        align_corners=net.count(0, 1),
    )  # fmt: skip


def affine_volume(net: Growing) -> None:
    if net.opset < 20:
        return
    n = net.count(1, 2)  # what is at the corners of one pixel is not defined
    theta = net.given(net.uniform(-0.9, 0.9, n, 3, 4).astype(_SINGLE))
    sizes = net.ints(n, net.count(1, 3), *(net.count(2, 5) for _ in range(3)))
    net.add("AffineGrid", theta, sizes, align_corners=net.count(0, 1))


def _regions(net: Growing, x: Value, many: int) -> Value:
    """Corners of regions, in pixels."""
    h, w = x.shape[2:]
    first = net.uniform(0.0, 0.6, many, 2) * [w, h]
    sizes = net.uniform(0.3, 0.8, many, 2) * [w, h]
    return net.given(np.concatenate([first, first + sizes], 1).astype(_SINGLE))


def aligned_regions(net: Growing) -> None:
    x = net.new_input([net.count(1, 2), net.count(1, 3), net.count(3, 9), net.count(3, 9)], _SINGLE)
    many = net.count(1, 4)
    batch = net.given(net.rng.integers(0, x.shape[0], many))
    mode = net.one_of(["avg", "max"])
    given: dict[str, Any] = {
        "output_height": net.count(1, 4), "output_width": net.count(1, 4), "mode": mode,
        "sampling_ratio": net.count(0, 3),
        "coordinate_transformation_mode": net.one_of(["half_pixel", "output_half_pixel"]),
    }  # fmt: skip
    if net.chance():
        given["spatial_scale"] = 0.7
    net.add("RoiAlign", x, _regions(net, x, many), batch, **given)


def pooled_regions(net: Growing) -> None:
    """Maxima over regions, whose corners are whole numbers."""
    x = net.new_input([net.count(1, 2), net.count(1, 3), net.count(3, 9), net.count(3, 9)], _SINGLE)
    many = net.count(1, 4)
    batch = net.rng.integers(0, x.shape[0], (many, 1))
    h, w = x.shape[2:]
    first = np.stack([net.rng.integers(0, w - 1, many), net.rng.integers(0, h - 1, many)], 1)
    last = first + net.rng.integers(0, 3, (many, 2))
    corners = np.concatenate([batch, first, np.minimum(last, [w - 1, h - 1])], 1)
    regions = net.sure(corners)
    net.add("MaxRoiPool", x, regions, pooled_shape=[net.count(1, 3), net.count(1, 3)])


def deformed(net: Growing) -> None:
    """A convolution whose taps are moved, and weighted by a mask or not."""
    if net.opset < 19:
        return
    n, groups = net.count(1, 2), net.one_of([1, 1, 2])
    channels = groups * net.count(1, 2)
    kernel = [net.count(1, 3), net.count(1, 3)]
    x = net.new_input([n, channels, net.count(3, 6), net.count(3, 6)], _SINGLE)
    strides, pads = [net.count(1, 2) for _ in kernel], [net.count(0, 1) for _ in range(4)]
    sizes = [
        (e + pads[d] + pads[d + 2] - k) // s + 1
        for d, (e, k, s) in enumerate(zip(x.shape[2:], kernel, strides, strict=True))
    ]
    taps = kernel[0] * kernel[1]
    shifts = net.given(net.uniform(-0.9, 0.9, n, 2 * taps, *sizes).astype(_SINGLE))
    made = groups * net.count(1, 3)
    w = net.constant(net.normal(made, channels // groups, *kernel), _SINGLE)
    bias = net.constant(net.normal(made), _SINGLE)
    mask = net.given(net.uniform(0.2, 1.0, n, taps, *sizes).astype(_SINGLE))
    net.add(
        "DeformConv", x, w, shifts, bias if net.chance() else None,
        *([mask] if net.chance() else []), kernel_shape=kernel, strides=strides, pads=pads,
        group=groups, offset_group=1,
    )  # fmt: skip


def columns(net: Growing) -> None:
    """Columns of patches added up to the image that they come from."""
    kernel = [net.count(1, 3), net.count(1, 3)]
    size = [net.count(k, 6) for k in kernel]
    strides, pads = [net.count(1, 2) for _ in kernel], [net.count(0, 1) for _ in range(4)]
    many = [
        (e + pads[d] + pads[d + 2] - k) // s + 1
        for d, (e, k, s) in enumerate(zip(size, kernel, strides, strict=True))
    ]
    c = net.count(1, 3)
    x = net.new_input([net.count(1, 2), c * kernel[0] * kernel[1], many[0] * many[1]])
    net.add("Col2Im", x, net.ints(*size), net.ints(*kernel), strides=strides, pads=pads)


def places_of_maxima(net: Growing) -> None:
    """Maxima with their places, at which they are put back."""
    x = net.new_input([net.count(1, 2), net.count(1, 3), *(net.count(2, 8) for _ in range(2))])
    given = windows(net, x)
    given.pop("auto_pad", None)
    given.pop("dilations", None)
    values, places = net.several("MaxPool", x, outputs=2, **given)
    if not any(given.get("pads", [])) and given["kernel_shape"] == given.get("strides"):
        net.add("MaxUnpool", values, places, **given)


def put_back(net: Growing) -> None:
    x = net.new_input([net.count(1, 2), net.count(1, 3), *(2 * net.count(1, 4) for _ in range(2))])
    given: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    values, places = net.several("MaxPool", x, outputs=2, **given)
    net.add("MaxUnpool", net.add("Tanh", values), places, **given)


def resized(net: Growing) -> None:
    """To any size, in all modes and by all maps of places."""
    x = image(net)
    if x.rank > 4:
        return
    maps = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
    if net.opset >= 19:
        maps.append("half_pixel_symmetric")
    mode = net.one_of(["nearest", "linear", "cubic"])
    given: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": net.one_of(maps)}
    if mode == "nearest":
        modes = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        given["nearest_mode"] = net.one_of(modes)
    elif net.chance(0.3):
        given["antialias"] = 1
    if mode == "cubic":
        given["cubic_coeff_a"] = net.one_of([-0.75, -0.5])
        given["exclude_outside"] = net.count(0, 1)
    aligned = given["coordinate_transformation_mode"] == "align_corners"
    if aligned or net.chance():  # onnxruntime (1.31) aligns the corners of another size
        sizes = [*x.shape[:2], *(net.count(1, 9) for _ in x.shape[2:])]
        net.add("Resize", x, None, None, net.ints(*sizes), **given)
    else:
        factors = [1.0, 1.0, *(net.one_of([0.5, 0.75, 1.0, 1.5, 2.0]) for _ in x.shape[2:])]
        scales = net.sure(np.array(factors))
        net.add("Resize", x, None, scales, **given)


def local_response(net: Growing) -> None:
    x = image(net)
    size = net.one_of([1, 3, 5])
    net.add("LRN", x, size=size, alpha=0.3, beta=float(net.uniform(0.3, 0.9)), bias=1.5)


def powers_pooled(net: Growing) -> None:
    x = image(net)
    if net.chance():
        net.add("GlobalLpPool", x, p=net.count(1, 3))
        return
    given = windows(net, x)
    given.pop("dilations", None)
    net.add("LpPool", x, p=net.count(1, 3), **given)


def transposed(net: Growing) -> None:
    """A transposed convolution with pads, dilations, or the size that comes out."""
    x = image(net)
    channels, rank = x.shape[1], x.rank - 2
    kernel, strides, dilations = ([net.count(1, 3) for _ in range(rank)] for _ in range(3))
    w = net.constant(net.normal(channels, net.count(1, 3), *kernel) / np.sqrt(channels))
    bias = [net.constant(net.normal(w.shape[1]))] if net.chance() else []
    given: dict[str, Any] = {"strides": strides, "kernel_shape": kernel, "dilations": dilations}
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    if net.chance():
        given["pads"] = [net.count(0, r // 2) for r in (*reach, *reach)]
    else:
        given["auto_pad"] = net.one_of(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if any(s > r for s, r in zip(strides, reach, strict=True)):
        raise Unstable("some elements follow from nothing")
    net.add("ConvTranspose", x, w, *bias, **given)


IMAGES: dict[Callable[[Growing], None], float] = {
    samples: 0.4, affine_volume: 0.2, aligned_regions: 0.4, pooled_regions: 0.3, deformed: 0.4,
    columns: 0.3, places_of_maxima: 0.3, put_back: 0.3, resized: 0.6, local_response: 0.3,
    powers_pooled: 0.4, transposed: 0.4,
}  # fmt: skip
