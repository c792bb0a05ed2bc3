"""Inputs whose values are known when a model is compiled: they become constants of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from onnx import ModelProto, ValueInfoProto, helper, numpy_helper

from ansorpy.errors import UsageError
from ansorpy.frontend.onnx.reader import copied
from ansorpy.frontend.onnx.shapes import may_have, stated_axes
from ansorpy.graph.ir import Array

__all__ = ["with_constants"]


def with_constants(model: ModelProto, constants: Mapping[str, ArrayLike]) -> ModelProto:
    """A copy of *model* in which the inputs named in *constants* are constants; or *model* itself.

    Raises:
        UsageError: There is no such input, or it has another shape or type.
    """
    if not constants:
        return model
    inputs = {info.name: info for info in model.graph.input}
    arrays = {}
    for name, value in constants.items():
        if name not in inputs:
            raise UsageError(
                f"there is no input {name!r} that could be constant",
                hint=f"the inputs are {', '.join(inputs) or 'none'}",
            )
        arrays[name] = _as_declared(inputs[name], value)
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in arrays]
    held = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    rest = [info for name, info in inputs.items() if name not in arrays]
    return copied(model, inputs=rest, initializers=[*kept, *held])


def _as_declared(info: ValueInfoProto, value: ArrayLike) -> Array:
    """*value* as an array of the type that the model declares for the input *info*."""
    if not info.type.HasField("tensor_type"):
        raise UsageError(f"input {info.name!r} is no tensor, so it cannot be constant")
    dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    try:
        given = np.asarray(value)
        if given.dtype.kind in "SU" and dtype.kind != "O":  # numpy would read numbers in text
            raise TypeError
        with np.errstate(over="ignore", invalid="ignore"):
            array = given.astype(dtype, copy=False)
            held = array.astype(given.dtype)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(
            f"{value!r} is no value of input {info.name!r}", hint=f"give numbers of {dtype.name}"
        ) from None
    wanted, are_floats = given, all("float" in kind.name for kind in (dtype, given.dtype))
    if are_floats:  # finite numbers are rounded, as where a model states them
        held, wanted = (each[~np.isfinite(each)] for each in (held, given))
    if not np.array_equal(held, wanted, equal_nan=are_floats):
        raise UsageError(f"input {info.name!r} is {dtype.name}, which does not hold {value!r}")
    stated = stated_axes(info)
    if stated is not None and not may_have(stated, array.shape):
        said = ["?" if axis == "" else axis for axis in stated]
        raise UsageError(
            f"input {info.name!r} has shape {said}, so its value cannot have {list(array.shape)}",
            hint=f"give an array of that shape, as text or a file: {info.name}=@{info.name}.npy",
        )
    return array
