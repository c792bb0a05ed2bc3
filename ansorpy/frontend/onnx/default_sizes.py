"""Ranges of dimensions that a model leaves open and the caller does not set."""

from __future__ import annotations

import re
from collections.abc import Mapping

from onnx import TensorProto, ValueInfoProto

from ansorpy.size_ranges import SizeRange

__all__ = ["default_range"]

_BATCH, _LENGTH = SizeRange(1, 32), SizeRange(1, 512)
_PAST = SizeRange(0, 511)
"""Of a cache that a decoder fills: with one more token, what a sequence has at most."""
_IMAGE = SizeRange(32, 1280, step=32)
"""Most networks on images halve them up to five times, and fit only multiples of 32."""

_SOUND = SizeRange(1, 160_000)
"""Ten seconds at 16 kHz; attention takes memory by the square."""

_CACHE, _SIGNAL = r"past|cache", r"sample|audio|wave|sound|signal|speech"
_BY_NAME: Mapping[str, SizeRange] = {
    _CACHE: _PAST,
    r"batch|^(n|b|bs)$": _BATCH,
    _SIGNAL: _SOUND,
    r"seq|len|token|time|frame|step|^(l|s|t)$": _LENGTH,
    r"height|width|^(h|w)$": _IMAGE,
}
"""What names of dimensions contain, in any case; the first that is found counts."""
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
_COLOURS = (1, 3)


def default_range(name: str, info: ValueInfoProto, axis: int) -> SizeRange:
    """The range for the dimension *name*, first seen at *axis* of the input *info*.

    Its name decides; or else its place: the first axis is a batch, one of a cache is what the cache
    holds, the last one of a sound is its samples, and two more axes beside one of colours are an
    image.
    """
    for pattern, sizes in _BY_NAME.items():
        if name != f"{info.name}.{axis}" and re.search(pattern, name.lower()):
            return sizes
    if axis == 0:
        return _BATCH
    if re.search(_CACHE, info.name.lower()):
        return _PAST
    if axis == len(info.type.tensor_type.shape.dim) - 1 and re.search(_SIGNAL, info.name.lower()):
        return _SOUND
    kind = info.type.tensor_type
    dims = [d.dim_value for d in kind.shape.dim]
    is_image = len(dims) == 4 and (dims[1] in _COLOURS or (dims[3] in _COLOURS and axis < 3))
    return _IMAGE if is_image and kind.elem_type in _FLOATS else _LENGTH
