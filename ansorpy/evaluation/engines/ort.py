"""onnxruntime as an engine: inputs and outputs are bound to fixed arrays."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

import numpy as np
import onnx
import onnxruntime

from ansorpy.arrays import Array
from ansorpy.evaluation.engines.protocol import Bounds, refusing

__all__ = ["OnnxRuntime", "cpu_session"]


class OnnxRuntime:
    """An inference session on the CPU with one stream, at the highest optimization level.

    Output shapes are taken from a first run; later runs write into the same arrays.  The session
    runs inputs of any size, whatever the bounds.
    """

    version = str(onnxruntime.__version__)
    precision = "the model's own"

    def __init__(
        self, path: str, feeds: Mapping[str, Array], threads: int, bounds: Bounds | None = None
    ) -> None:
        self._path = path
        self._session = cpu_session(path, threads)
        self.feed(feeds)

    def feed(self, feeds: Mapping[str, Array]) -> None:
        """Bind *feeds*, and output arrays of the shapes that a first run with them returns."""
        names = [o.name for o in self._session.get_outputs()]
        with _refusing(self._path):
            first = self._session.run(names, dict(feeds))
        self._feeds = {name: np.asarray(value, order="C") for name, value in feeds.items()}
        self._outputs = {n: np.zeros_like(v) for n, v in zip(names, first, strict=True)}
        self._binding = self._session.io_binding()
        self._values = [self._bind_input(n, v) for n, v in self._feeds.items()]
        self._values += [self._bind_output(n, v) for n, v in self._outputs.items()]

    def _bind_input(self, name: str, array: Array) -> object:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self._binding.bind_ortvalue_input(name, value)
        return value

    def _bind_output(self, name: str, array: Array) -> object:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self._binding.bind_ortvalue_output(name, value)
        return value

    def run(self) -> None:
        """One inference."""
        self._session.run_with_iobinding(self._binding)

    def outputs(self) -> dict[str, Array]:
        """The bound output arrays."""
        names = list(self._outputs)
        values = self._binding.get_outputs()
        return {name: value.numpy() for name, value in zip(names, values, strict=True)}


def cpu_session(path: str, threads: int) -> onnxruntime.InferenceSession:
    """A session on the CPU with one stream.

    Raises:
        UsageError: onnxruntime does not run the model.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    with _refusing(path):
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _refusing(path: str) -> AbstractContextManager[None]:
    """Errors of onnxruntime about the model *path*."""

    def hint() -> str | None:
        model = onnx.load(path, load_external_data=False)
        own = {(function.domain, function.name) for function in model.functions}
        for node in model.graph.node:
            if not (onnx.defs.has(node.op_type, node.domain) or (node.domain, node.op_type) in own):
                return None  # the reference evaluator has only onnx's and the model's own operators
        return 'compare with another engine: --against reference (against="reference" in Python)'

    return refusing(f"onnxruntime {onnxruntime.__version__}", hint)
