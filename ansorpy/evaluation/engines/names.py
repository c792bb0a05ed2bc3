"""Names of the engines and locations of their classes, which are not loaded here."""

from __future__ import annotations

__all__ = ["ENGINES", "ENGINE_NAMES", "PEERS"]

# name -> (module:class, package that provides it, extra that installs it)
ENGINES = {
    "onnxruntime": ("ansorpy.evaluation.engines.ort:OnnxRuntime", "onnxruntime", "verify"),
    "openvino": ("ansorpy.evaluation.engines.ov:OpenVino", "openvino", "bench"),
    "reference": ("ansorpy.evaluation.engines.reference:Reference", "onnx", "verify"),
}
ENGINE_NAMES = tuple(ENGINES)
PEERS = ("onnxruntime", "openvino")
