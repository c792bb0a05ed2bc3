"""onnxruntime as the reference of tests, in one thread: more would spin beside the tests' own."""

from __future__ import annotations

import onnxruntime
from onnx import ModelProto

__all__ = ["peer"]


def peer(model: ModelProto | bytes | str) -> onnxruntime.InferenceSession:
    """A session of *model*, or of its bytes or the path of its file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    given = model.SerializeToString() if isinstance(model, ModelProto) else model
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
