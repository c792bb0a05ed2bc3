"""OpenVINO as an engine: one infer request, whose tensors are set once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import openvino

from ansorpy.arrays import Array
from ansorpy.evaluation.engines.protocol import Bounds, refusing

__all__ = ["OpenVino"]


class OpenVino:
    """A model compiled for the CPU, with one stream, for latency, in float32 as in the file.

    Without the precision hint, the plugin computes in bfloat16 on machines that support it, which
    is not the requested computation.  Axes whose bounds differ are dynamic within them; the request
    then keeps the outputs in tensors of its own.
    """

    version = str(openvino.__version__).split("-")[0]

    def __init__(
        self, path: str, feeds: Mapping[str, Array], threads: int, bounds: Bounds | None = None
    ) -> None:
        core = openvino.Core()
        options = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": str(threads),
            "INFERENCE_PRECISION_HINT": "f32",
        }
        with refusing(f"openvino {self.version}", line=-1):  # the first ones name its sources
            model = core.read_model(path)
            if bounds is None:
                model.reshape({name: list(value.shape) for name, value in feeds.items()})
            else:
                model.reshape({name: _partial(axes) for name, axes in bounds.items()})
            compiled = core.compile_model(model, "CPU", options)
        hint = compiled.get_property("INFERENCE_PRECISION_HINT")
        self.precision = str(hint.get_type_name())
        self._ports = {port.get_any_name(): port for port in compiled.outputs}
        self._request = compiled.create_infer_request()
        self.feed(feeds)
        self._own = {
            name: self._own_output(port)
            for name, port in self._ports.items() if port.get_partial_shape().is_static
        }  # fmt: skip

    def feed(self, feeds: Mapping[str, Array]) -> None:
        """Set the inputs; the request reads these arrays."""
        self._feeds = {name: np.asarray(value, order="C") for name, value in feeds.items()}
        for name, value in self._feeds.items():
            self._request.set_tensor(name, openvino.Tensor(value, shared_memory=True))

    def _own_output(self, port: openvino.ConstOutput) -> Array:
        array = np.zeros(tuple(port.get_shape()), port.get_element_type().to_dtype())
        self._request.set_tensor(port, openvino.Tensor(array, shared_memory=True))
        return array

    def run(self) -> None:
        """Run one inference, without the copies of outputs that ``infer`` returns by default."""
        self._request.infer(share_inputs=True, share_outputs=True)

    def outputs(self) -> dict[str, Array]:
        """The output arrays that the request writes."""
        return {
            name: self._own[name] if name in self._own else self._request.get_tensor(port).data
            for name, port in self._ports.items()
        }


def _partial(axes: Sequence[tuple[int, int]]) -> openvino.PartialShape:
    return openvino.PartialShape(
        [low if low == high else openvino.Dimension(low, high) for low, high in axes]
    )
