"""The cases of onnx's backend suite that need no GPU, made in memory or read from the package."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import onnx
from numpy.typing import NDArray
from onnx import ModelProto, SequenceProto, TensorProto, numpy_helper
from onnx.backend.test import loader
from onnx.backend.test.case import base
from onnx.backend.test.case.test_case import TestCase

__all__ = ["Array", "DataSet", "SuiteCase", "suite"]

Array = NDArray[Any]
_KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class DataSet:
    """Inputs of a case in order, and what comes out."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]


@dataclass(frozen=True)
class SuiteCase:
    """One case: its model, and how closely results must agree."""

    kind: str
    case: TestCase

    @property
    def name(self) -> str:
        return str(self.case.name)

    @property
    def model(self) -> ModelProto:
        if self.case.model is not None:
            return self.case.model
        return onnx.load(self._folder / "model.onnx")

    @property
    def data(self) -> list[DataSet]:
        """Its inputs and outputs."""
        if self.case.data_sets is not None:
            return [DataSet(*map(_values, pair)) for pair in self.case.data_sets]
        folders = sorted(self._folder.glob("test_data_set_*"))
        return [DataSet(_read(one, "input"), _read(one, "output")) for one in folders]

    @property
    def _folder(self) -> Path:
        """Where the files of a case are that is not made in memory."""
        assert self.case.model_dir is not None
        return Path(self.case.model_dir)


@cache
def suite() -> tuple[SuiteCase, ...]:
    """All cases, in an order that does not change."""
    with warnings.catch_warnings(action="ignore"), patch.object(base, "process_snippet", _unsaid):
        found = [SuiteCase(k, case) for k in _KINDS for case in loader.load_model_tests(kind=k)]
    return tuple(sorted(found, key=lambda one: (one.kind, one.name)))


def _unsaid(op: str, name: str, export: Any) -> tuple[str, str]:
    """Instead of a text made of the sources of cases, which takes seconds."""
    return name, ""


def _values(given: Sequence[Any]) -> list[Any]:
    return [_value(one) for one in given]


def _value(given: Any) -> Any:
    if isinstance(given, TensorProto):
        return numpy_helper.to_array(given)
    if isinstance(given, SequenceProto):
        return numpy_helper.to_list(given)
    return given


def _read(folder: Path, prefix: str) -> list[Array]:
    files = sorted(folder.glob(f"{prefix}_*.pb"), key=lambda f: int(f.stem.rpartition("_")[2]))
    return [numpy_helper.to_array(TensorProto.FromString(file.read_bytes())) for file in files]
