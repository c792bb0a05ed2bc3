"""Files and objects to a checked ONNX model of an operator set we read."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto

from ansorpy.errors import ForeignFile, UnsupportedModel

__all__ = ["OLDEST_OPSET", "check", "opset_of", "read", "upgraded"]

OLDEST_OPSET = 7
"""Importers know the operators' meanings from this operator set on; older models are converted."""

_CONVERT_TO = 13


def read(source: str | Path | ModelProto) -> ModelProto:
    """The model in a file (external data included) or the object itself, unchecked.

    Raises:
        ForeignFile: The file cannot be read or holds no ONNX model.
    """
    if isinstance(source, ModelProto):
        model, what = source, "the model object"
    else:
        model, what = _read_file(Path(source)), str(source)
    if not model.ir_version or not model.graph.output:
        raise ForeignFile(
            f"{what} is not an ONNX model: it has no graph with outputs",
            hint="give a .onnx file as torch.onnx.export or onnx.save writes it",
        )
    return model


def _read_file(path: Path) -> ModelProto:
    try:
        return onnx.load_model(str(path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ForeignFile(f"cannot read {path}: {reason}", hint="check the path") from None
    except (DecodeError, ValueError, RuntimeError, onnx.checker.ValidationError) as error:
        raise ForeignFile(
            f"{path} is not an ONNX model: {_first_line(error)}",
            hint="give a .onnx file as torch.onnx.export or onnx.save writes it",
        ) from None


def opset_of(model: ModelProto) -> int:
    """The version of the standard operators the model imports (1 when it names none)."""
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    return max(versions, default=1)


def check(model: ModelProto, source: str | Path | ModelProto) -> None:
    """Run onnx's checker; by path for files, so that models over 2 GiB pass."""
    try:
        onnx.checker.check_model(model if isinstance(source, ModelProto) else str(source))
    except (onnx.checker.ValidationError, ValueError) as error:
        raise ForeignFile(
            f"the ONNX model is not valid: {_first_line(error)}",
            hint="export it again; `python -m onnx.checker` reports the same fault",
        ) from None


def upgraded(model: ModelProto) -> ModelProto:
    """The model itself, or its conversion to a newer operator set when it is older than we read.

    Raises:
        UnsupportedModel: onnx cannot convert it, or it is newer than the installed onnx.
    """
    opset, newest = opset_of(model), onnx.defs.onnx_opset_version()
    if opset > newest:
        raise UnsupportedModel(
            f"the model uses operator set {opset}, the installed onnx package knows up to {newest}",
            hint="update the onnx package, or export with an older opset",
        )
    if opset >= OLDEST_OPSET:
        return model
    try:
        return onnx.version_converter.convert_version(model, _CONVERT_TO)
    except Exception as error:  # onnx's converter raises whatever its C++ adapters throw
        raise UnsupportedModel(
            f"operator set {opset} is too old and onnx cannot convert it: {_first_line(error)}",
            hint=f"export the model with opset {OLDEST_OPSET} or later",
        ) from None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
