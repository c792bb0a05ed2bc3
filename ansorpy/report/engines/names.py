"""Names of the engines and locations of their classes, which are not loaded here."""

from __future__ import annotations

__all__ = ["ENGINES", "ENGINE_NAMES", "PEERS"]

# name -> (module:class, package that provides it, extra that installs it)
ENGINES = {
    "onnxruntime": ("ansorpy.report.engines.ort:OnnxRuntime", "onnxruntime", "verify"),
    "openvino": ("ansorpy.report.engines.ov:OpenVino", "openvino", "bench"),
    "reference": ("ansorpy.report.engines.reference:Reference", "onnx", "verify"),
}
ENGINE_NAMES = tuple(ENGINES)
PEERS = ("onnxruntime", "openvino")
