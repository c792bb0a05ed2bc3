"""Names of the engines and locations of their classes, which are not loaded here."""

from __future__ import annotations

from collections.abc import Iterable

from ansorpy.errors import UsageError

__all__ = ["ENGINES", "ENGINE_NAMES", "PEERS", "demand_engines"]

# name -> (module:class, package that provides it, extra that installs it)
ENGINES = {
    "onnxruntime": ("ansorpy.evaluation.engines.ort:OnnxRuntime", "onnxruntime", "verify"),
    "openvino": ("ansorpy.evaluation.engines.ov:OpenVino", "openvino", "bench"),
    "reference": ("ansorpy.evaluation.engines.reference:Reference", "onnx", "verify"),
}
ENGINE_NAMES = tuple(ENGINES)
PEERS = ("onnxruntime", "openvino")


def demand_engines(names: Iterable[str]) -> None:
    """Raise :class:`UsageError` if one of *names* is that of no engine."""
    for name in names:
        if name not in ENGINES:
            raise UsageError(f"unknown engine {name!r}", hint=f"choose from {', '.join(ENGINES)}")
