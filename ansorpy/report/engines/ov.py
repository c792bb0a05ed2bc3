"""OpenVINO as an engine: one infer request, whose tensors are set once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import openvino

from ansorpy.report.engines.protocol import Array

__all__ = ["OpenVino"]


class OpenVino:
    """A model compiled for the CPU, with one stream, for latency, in float32 as in the file.

    Without the precision hint, the plugin computes in bfloat16 on machines that support it, which
    is not the requested computation.
    """

    version = str(openvino.__version__).split("-")[0]

    def __init__(self, path: str, feeds: Mapping[str, Array], threads: int) -> None:
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({name: list(value.shape) for name, value in feeds.items()})
        options = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": str(threads),
            "INFERENCE_PRECISION_HINT": "f32",
        }
        compiled = core.compile_model(model, "CPU", options)
        self._request = compiled.create_infer_request()
        self._feeds = {name: np.asarray(value, order="C") for name, value in feeds.items()}
        for name, value in self._feeds.items():
            self._request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
        self._outputs = {}
        for port in compiled.outputs:
            self._outputs[port.get_any_name()] = self._own_output(port)

    def _own_output(self, port: openvino.ConstOutput) -> Array:
        array = np.zeros(tuple(port.get_shape()), port.get_element_type().to_dtype())
        self._request.set_tensor(port, openvino.Tensor(array, shared_memory=True))
        return array

    def run(self) -> None:
        """Run one inference, without the copies of outputs that ``infer`` returns by default."""
        self._request.infer(share_inputs=True, share_outputs=True)

    def outputs(self) -> dict[str, Array]:
        """The output arrays that the request writes."""
        return dict(self._outputs)
