"""Arrays of other libraries, in the CPU's memory, are read and written in place."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import pytest

from ansorpy.api.operators import build
from ansorpy.errors import UsageError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.runtime.kernel import Kernel
from ansorpy.target import Target
from tests.runtime import programs
from tests.runtime.growing import decoder, memory, part

Rng = np.random.Generator
CapsuleType: TypeAlias = Any
"""``types.CapsuleType``, which Python has from 3.13 on."""


class Foreign:
    """An array that offers its memory by DLPack and in no other way."""

    def __init__(self, array: np.ndarray[Any, Any], device: int = 1, error: str = "") -> None:
        self.array = array
        self._device = device
        self._error = error

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0

    def __dlpack__(self, **wanted: Any) -> CapsuleType:
        if self._error:
            raise BufferError(self._error)
        assert wanted.get("copy") is not True
        capsule: CapsuleType = self.array.__dlpack__(**wanted)
        return capsule


class OnGpu(Foreign):
    """An array in a GPU's memory, which numpy cannot read."""

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        raise TypeError("copy it to the host first")


def test_a_kernel_reads_and_writes_in_place(rng: Rng) -> None:
    w, b = programs.constants(rng)
    x, out = programs.feed(rng), Foreign(np.zeros((programs.N, programs.M), np.float32))
    task = programs.task_of(programs.dense(), "dense", programs.packed)
    kernel = Kernel(task, target=Target.host(), threads=2).bind(W=Foreign(w), B=Foreign(b))
    expected = programs.expected_dense(x, w, b)
    assert kernel(Foreign(x), out=out) is out
    np.testing.assert_allclose(out.array, expected, rtol=1e-4, atol=1e-5)
    out.array[...] = np.nan
    kernel.prepare(Foreign(x), out=[out])()
    np.testing.assert_allclose(out.array, expected, rtol=1e-4, atol=1e-5)


def test_a_model_reads_and_writes_in_place(rng: Rng) -> None:
    model, layers = programs.model(rng)
    x = programs.feed(rng)
    outputs = [Foreign(np.zeros(port.shape, port.dtype)) for port in model.get_outputs()]
    results = model.run(None, {"x": Foreign(x)}, outputs=outputs)
    assert all(result is array for result, array in zip(results, outputs, strict=True))
    run = model.prepare({"x": Foreign(x)}, outputs)
    for _ in range(2):
        x[...] = programs.feed(rng)
        run()
        for result, wanted in zip(outputs, programs.expected(layers, x), strict=True):
            np.testing.assert_allclose(result.array, wanted, rtol=1e-4, atol=1e-5)


class ForeignBfloat16(Foreign):
    """One of bfloat16, which numpy offers as 16-bit integers only."""

    def __dlpack__(self, **wanted: Any) -> CapsuleType:
        capsule = self.array.view(np.int16).__dlpack__()
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", ctypes.pythonapi)
        )
        code = ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 20)
        code.value = 4  # of bfloat16, behind an address, a device and a number of axes
        return capsule


def test_bfloat16_is_read_and_written_in_place() -> None:
    a = placeholder((4, 3), DType.BFLOAT16, name="A")
    b = compute((4, 3), lambda i, j: a[i, j] * 2.0, name="B")
    kernel = build([a, b])
    x = np.arange(24).reshape(4, 6).astype(DType.BFLOAT16.numpy)
    out = ForeignBfloat16(np.zeros((4, 3), x.dtype))
    given = ForeignBfloat16(x[:, :3].copy())
    for _ in range(2):
        assert kernel(given, out=out) is out
        np.testing.assert_array_equal(out.array, given.array * 2)
        given.array[...] += 1
    with pytest.raises(UsageError, match="'A' is not contiguous"):
        kernel(ForeignBfloat16(x[:, ::2]))
    with pytest.raises(UsageError, match="takes 4x3 of bfloat16, got 4x3 of int16"):
        kernel(Foreign(given.array.view(np.int16)))


def test_outputs_are_taken_without_a_copy(rng: Rng) -> None:
    model, _ = programs.model(rng)
    result = model.run(None, {"x": programs.feed(rng)})[0]
    np.from_dlpack(Foreign(result))[...] = 7.0
    assert (result == 7.0).all()


def test_what_cannot_be_used_is_refused(rng: Rng) -> None:
    model, _ = programs.model(rng)
    x = programs.feed(rng)
    with pytest.raises(UsageError, match="input 'x' cannot be used: it requires gradients"):
        model(Foreign(x, error="it requires gradients"))
    with pytest.raises(UsageError, match="takes 5x12 of float32, got 5x12 of float64"):
        model(Foreign(x.astype(np.float64)))
    outputs = [Foreign(np.zeros(port.shape, port.dtype)) for port in model.get_outputs()]
    outputs[0].array.flags.writeable = False
    with pytest.raises(UsageError, match="output 'first' is read-only"):
        model.run(None, {"x": x}, outputs=outputs)
    with pytest.raises(UsageError, match="input 'x' cannot be used: copy it to the host"):
        model(OnGpu(x, device=2))
    with pytest.raises(UsageError, match="input 'x' must be a numpy array, got Foreign"):
        model.prepare({"x": Foreign(x, device=2)}, outputs)


def test_an_output_continues_memory_of_another_library(rng: Rng) -> None:
    case = replace(decoder(), dims={"past": 3})
    *_, (feeds, want) = islice(case.steps(rng), 4)
    wholes, given = memory(case, 4), dict[str, object](feeds)
    for name, whole in wholes.items():
        part(whole, case.axes[name], 3)[...] = feeds[name]
        given[name] = Foreign(part(whole, case.axes[name], 3))
    outputs = [
        Foreign(part(wholes[case.alias[name]], case.axes[case.alias[name]], 4))
        if name in case.alias else Foreign(np.zeros(result.shape, np.float32))
        for name, result in want.items()
    ]  # fmt: skip
    case.compiled().run([*want], given, outputs)
    for output, right in zip(outputs, want.values(), strict=True):
        np.testing.assert_allclose(output.array, right, rtol=2e-5, atol=2e-5)
