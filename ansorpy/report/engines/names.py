"""The names of the engines and where their classes are; loads none of them."""

from __future__ import annotations

__all__ = ["ENGINES", "ENGINE_NAMES", "PEERS"]

# name -> (module:class, the package that provides it, the extra that installs it)
ENGINES = {
    "onnxruntime": ("ansorpy.report.engines.ort:OnnxRuntime", "onnxruntime", "verify"),
    "openvino": ("ansorpy.report.engines.ov:OpenVino", "openvino", "bench"),
    "reference": ("ansorpy.report.engines.reference:Reference", "onnx", "verify"),
}
ENGINE_NAMES = tuple(ENGINES)
PEERS = ("onnxruntime", "openvino")
