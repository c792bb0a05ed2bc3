"""Layers of networks: products, convolutions, pools, norms, attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from ansorpy.frontend.torch.sizes import Size, Untranslatable
from ansorpy.frontend.torch.writer import DTYPES, Operand, Value, Writer

__all__ = ["OPERATORS"]


def _matmul(w: Writer, a: Value, b: Value) -> str:
    return w.op("MatMul", a, b)


def _added(w: Writer, base: Value, product: str, beta: float, alpha: float) -> str:
    """``beta * base + alpha * product``."""
    if alpha != 1:
        product = w.op("Mul", product, w.same_type(alpha))
    if beta == 0:
        return product
    scaled = base.name if beta == 1 else w.op("Mul", base, w.same_type(beta))
    return w.op("Add", product, scaled)


def _addmm(w: Writer, base: Value, a: Value, b: Value, *, beta: float = 1, alpha: float = 1) -> str:
    return _added(w, base, w.op("MatMul", a, b), beta, alpha)


def _linear(w: Writer, x: Value, weight: Value, bias: Value | None = None) -> str:
    product = w.op("MatMul", x, w.op("Transpose", weight, perm=[1, 0]))
    return product if bias is None else w.op("Add", product, bias)


def _spread(values: int | Sequence[int], rank: int) -> list[int]:
    """One number for each of *rank* axes; ATen may give one for all."""
    found = [values] if isinstance(values, int) else list(values)
    if not all(isinstance(value, int) for value in found):
        raise Untranslatable(f"sizes {found} that are open")
    return found * rank if len(found) == 1 else found


def _convolution(
    w: Writer, x: Value, weight: Value, bias: Value | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int,
) -> str:  # fmt: skip
    rank = weight.rank - 2
    pads = _spread(padding, rank)
    attributes: dict[str, object] = {
        "strides": _spread(stride, rank), "pads": [*pads, *pads],
        "dilations": _spread(dilation, rank), "group": groups,
    }  # fmt: skip
    operands = [_batched(w, x, rank), weight.name, *([] if bias is None else [bias.name])]
    if transposed:
        attributes["output_padding"] = _spread(output_padding, rank)
    found = w.op("ConvTranspose" if transposed else "Conv", *operands, **attributes)
    return _unbatched(w, found, x, rank)


def _pool_attributes(
    rank: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil: bool
) -> dict[str, object]:
    pads = _spread(padding, rank)
    return {
        "kernel_shape": _spread(kernel, rank),
        "strides": _spread(stride or kernel, rank),
        "pads": [*pads, *pads],
        "ceil_mode": int(ceil),
    }


def _batched(w: Writer, x: Value, rank: int) -> str:
    """*x* with a batch, which operands of ATen need not have."""
    return x.name if x.rank == rank + 2 else w.op("Unsqueeze", x, w.ints([0]))


def _unbatched(w: Writer, value: str, x: Value, rank: int) -> str:
    return value if x.rank == rank + 2 else w.op("Squeeze", value, w.ints([0]))


def _max_pool(rank: int) -> Callable[..., tuple[str | None, ...]]:
    def translate(
        w: Writer, x: Value, kernel: Sequence[int], stride: Sequence[int] = (),
        padding: Sequence[int] = (0,), dilation: Sequence[int] = (1,), ceil_mode: bool = False,
    ) -> tuple[str | None, ...]:  # fmt: skip
        """The places of the maxima, which ATen counts in each plane, are left out."""
        found = w.op(
            "MaxPool", _batched(w, x, rank), dilations=_spread(dilation, rank),
            **_pool_attributes(rank, kernel, stride, padding, ceil_mode),
        )  # fmt: skip
        return _unbatched(w, found, x, rank), None

    return translate


def _avg_pool(rank: int) -> Callable[..., str]:
    def translate(
        w: Writer, x: Value, kernel: Sequence[int], stride: Sequence[int] = (),
        padding: Sequence[int] = (0,), ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> str:  # fmt: skip
        if divisor_override is not None:
            raise Untranslatable(f"divisor_override={divisor_override}")
        found = w.op(
            "AveragePool", _batched(w, x, rank), count_include_pad=int(count_include_pad),
            **_pool_attributes(rank, kernel, stride, padding, ceil_mode),
        )  # fmt: skip
        return _unbatched(w, found, x, rank)

    return translate


def _adaptive_avg_pool(w: Writer, x: Value, sizes: Sequence[Size]) -> str:
    """Windows of equal sizes if these divide, or else products with matrices of weights."""
    rank = len(sizes)
    extents = x.shape[-rank:]
    if all(size == 1 for size in sizes):
        return w.op("ReduceMean", x, w.ints([axis - rank for axis in range(rank)]), keepdims=1)
    if not all(isinstance(n, int) for n in (*extents, *sizes)):
        raise Untranslatable(f"windows of {extents} that are open")
    if all(extent % size == 0 for extent, size in zip(extents, sizes, strict=True)):
        kernel = [extent // size for extent, size in zip(extents, sizes, strict=True)]
        return _avg_pool(rank)(w, x, kernel)
    found = x.name
    for number, (extent, size) in enumerate(zip(extents, sizes, strict=True)):
        axis = x.rank - rank + number
        perm = [n for n in range(x.rank) if n != axis] + [axis]
        means = w.constant(_means(extent, size).astype(DTYPES[w.dtype]))
        product = w.op("MatMul", w.transpose(found, perm), means)
        found = w.transpose(product, [perm.index(n) for n in range(x.rank)])
    return found


def _means(extent: int, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Column *n* has the weights of the elements of window *n*."""
    found = np.zeros((extent, size))
    for n in range(size):
        first, end = n * extent // size, -(-(n + 1) * extent // size)
        found[first:end, n] = 1 / (end - first)
    return found


def _constant_like(w: Writer, value: float, extents: Sequence[Size], dtype: torch.dtype) -> str:
    if not all(isinstance(extent, int) for extent in extents):
        raise Untranslatable(f"weights of shape {tuple(extents)}")
    return w.constant(np.full([int(e) for e in extents], value).astype(DTYPES[dtype]))


def _affine(
    w: Writer, weight: Value | None, bias: Value | None, extents: Sequence[Size],
    dtype: torch.dtype,
) -> tuple[str, str]:  # fmt: skip
    """Scale and shift of a norm; without them, 1 and 0."""
    scale = _constant_like(w, 1, extents, dtype) if weight is None else weight.name
    shift = _constant_like(w, 0, extents, dtype) if bias is None else bias.name
    return scale, shift


def _layer_norm(
    w: Writer, x: Value, extents: Sequence[Size], weight: Value | None, bias: Value | None,
    eps: float,
) -> tuple[str | None, ...]:  # fmt: skip
    wide = x.dtype if weight is None else torch.promote_types(x.dtype, weight.dtype)
    parts = (w.as_type(x, wide), *_affine(w, weight, bias, extents, wide))
    found = w.op("LayerNormalization", *parts, axis=-len(extents), epsilon=float(eps))
    return found if wide == x.dtype else w.cast(found, x.dtype), None, None


def _group_norm(
    w: Writer, x: Value, weight: Value | None, bias: Value | None, batch: Size, channels: Size,
    elements: Size, groups: int, eps: float,
) -> tuple[str | None, ...]:  # fmt: skip
    parts = _affine(w, weight, bias, [channels], x.dtype)
    found = w.op("GroupNormalization", x, *parts, num_groups=groups, epsilon=float(eps))
    return found, None, None


def _batch_norm(
    w: Writer, x: Value, weight: Value | None, bias: Value | None, mean: Value, variance: Value,
    momentum: float, eps: float,
) -> tuple[str | None, ...]:  # fmt: skip
    parts = _affine(w, weight, bias, [x.shape[1]], mean.dtype)
    found = w.op("BatchNormalization", x, *parts, mean, variance, epsilon=float(eps))
    return found, None, None


def _attention(
    w: Writer, q: Value, k: Value, v: Value, mask: Value | None = None, dropout: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> str:  # fmt: skip
    if dropout:
        raise Untranslatable(f"dropout_p={dropout}")
    if any(operand.rank not in (3, 4) for operand in (q, k, v)):
        raise Untranslatable(f"queries of {q.rank} dimensions")
    operands = [_with_heads(w, operand) for operand in (q, k, v)]
    if mask is not None and mask.shape[-1:] != k.shape[-2:-1]:  # ONNX hides the keys behind it
        shape = (*mask.shape[:-1], k.shape[-2])
        mask = mask._replace(name=w.expand(mask, shape), shape=shape)
    if mask is not None:
        operands.append(_with_heads(w, mask) if q.rank == mask.rank == 3 else mask.name)
    found = w.op("Attention", *operands, is_causal=int(is_causal), scale=scale)
    return found if q.rank == 4 else w.op("Squeeze", found, w.ints([1]))


def _with_heads(w: Writer, x: Value) -> str:
    return x.name if x.rank == 4 else w.op("Unsqueeze", x, w.ints([1]))


def _factor(scale: float, extent: Size, out: Size) -> np.float32:
    """The number nearest to *scale* by which ONNX, in float32, makes *out* elements of *extent*."""
    factor = np.float32(scale)
    while isinstance(extent, int) and isinstance(out, int):
        made = int(factor * np.float32(extent))
        if made == out:
            break
        factor = np.nextafter(factor, np.float32(np.inf if made < out else 0))
    return factor


def _resize(w: Writer, x: Value, mode: str, places: str, scales: Sequence[float]) -> str:
    """*x* at the size of the result; factors that were given decide where elements are read,
    unless the corners do.  Sizes that are not fixed are given by whole factors, too."""
    made = w.result.shape[2:]
    is_fixed = all(isinstance(extent, int) for extent in made)
    is_whole = all(float(scale).is_integer() for scale in scales)
    if any(scales) and (places != "align_corners" or (is_whole and not is_fixed)):
        spatial = zip(scales, x.shape[2:], made, strict=True)
        operands = [w.constant(np.asarray([1, 1, *(_factor(*one) for one in spatial)], np.float32))]
    else:
        operands = ["", w.shape(w.result.shape)]
    return w.op(
        "Resize", x, "", *operands, mode=mode, coordinate_transformation_mode=places,
        nearest_mode="floor", cubic_coeff_a=-0.75,
    )  # fmt: skip


def _nearest(w: Writer, x: Value, size: object, scales: Sequence[float] | None = None) -> str:
    return _resize(w, x, "nearest", "asymmetric", scales or [])


def _weighted(mode: str) -> Callable[..., str]:
    def translate(
        w: Writer, x: Value, size: object, align_corners: bool,
        scales: Sequence[float] | None = None,
    ) -> str:  # fmt: skip
        places = "align_corners" if align_corners else "half_pixel"
        return _resize(w, x, mode, places, scales or [])

    return translate


def _interpolate(
    w: Writer, x: Value, size: object, factors: Sequence[float] | None, mode: str,
    align_corners: bool | None,
) -> str:  # fmt: skip
    if mode == "nearest":
        return _nearest(w, x, size, factors)
    how = _weighted("cubic" if mode == "bicubic" else "linear")
    return how(w, x, size, bool(align_corners), factors)


def _grid_sample(
    w: Writer, x: Value, grid: Value, mode: int = 0, padding: int = 0, align: bool = False
) -> str:
    return w.op(
        "GridSample", x, grid, mode=("linear", "nearest", "cubic")[mode],
        padding_mode=("zeros", "border", "reflection")[padding], align_corners=int(align),
    )  # fmt: skip


def _embedding(
    w: Writer, table: Value, places: Value, padding_idx: int = -1, *unused: Operand
) -> str:
    return w.op("Gather", table, w.as_type(places, torch.int64), axis=0)


def _cdist(w: Writer, a: Value, b: Value, p: float, mode: int | None = None) -> str:
    if p != 2:
        raise Untranslatable(f"p={p}")
    left = w.op("Unsqueeze", a, w.ints([a.rank - 1]))
    right = w.op("Unsqueeze", b, w.ints([b.rank - 2]))
    away = w.op("Sub", left, right)
    return w.op("Sqrt", w.op("ReduceSum", w.op("Mul", away, away), w.ints([-1]), keepdims=0))


OPERATORS: dict[str, Callable[..., str | tuple[str | None, ...]]] = {
    **{f"avg_pool{rank}d.default": _avg_pool(rank) for rank in (1, 2, 3)},
    **{f"_adaptive_avg_pool{rank}d.default": _adaptive_avg_pool for rank in (2, 3)},
    **{f"upsample_nearest{rank}d.vec": _nearest for rank in (1, 2, 3)},
    **{
        f"upsample_{name}.vec": _weighted("linear")
        for name in ("linear1d", "bilinear2d", "trilinear3d")
    },
    "_cdist_forward.default": _cdist,
    "_native_batch_norm_legit_no_training.default": _batch_norm,
    "adaptive_avg_pool1d.default": _adaptive_avg_pool,
    "addmm.default": _addmm,
    "baddbmm.default": _addmm,
    "bmm.default": _matmul,
    "convolution.default": _convolution,
    "dot.default": _matmul,
    "embedding.default": _embedding,
    "interpolate.default": _interpolate,
    "grid_sampler_2d.default": _grid_sample,
    "linear.default": _linear,
    "matmul.default": _matmul,
    "max_pool2d_with_indices.default": _max_pool(2),
    "max_pool3d_with_indices.default": _max_pool(3),
    "mm.default": _matmul,
    "mv.default": _matmul,
    "native_group_norm.default": _group_norm,
    "native_layer_norm.default": _layer_norm,
    "scaled_dot_product_attention.default": _attention,
    "upsample_bicubic2d.vec": _weighted("cubic"),
}
"""Translations by the operator's name and overload."""
