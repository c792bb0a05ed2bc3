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
from onnx import ModelProto, SequenceProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test import loader
from onnx.backend.test.case import base
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import Runner

from ansorpy.frontend.onnx.reader import opset_of
from ansorpy.frontend.onnx.registry import operator_of
from ansorpy.frontend.onnx.shapes import network_inputs

__all__ = ["Array", "DataSet", "SuiteCase", "suite"]

Array = NDArray[Any]
_KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
_SEVERAL = "(several operators)"


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
        return onnx.load(self._light or self._folder / "model.onnx")

    @property
    def data(self) -> list[DataSet]:
        """Its inputs and outputs."""
        if self.case.data_sets is not None:
            return [DataSet(*map(_values, pair)) for pair in self.case.data_sets]
        if self._light is not None:
            return [self._ramp(self._light)]
        folders = sorted(self._folder.glob("test_data_set_*"))
        return [DataSet(_read(one, "input"), _read(one, "output")) for one in folders]

    @property
    def operator(self) -> str:
        """The operator that it tries: the only one of its model, or of the case it expands."""
        plain = self.name.partition("_expanded")[0]
        found = self if plain == self.name else _by_name().get(plain, self)
        operators = {operator_of(node) for node in found.model.graph.node}
        return operators.pop() if len(operators) == 1 else _SEVERAL

    @property
    def opset(self) -> int:
        """The operator set of its model: of the domain of its operator, if that is not onnx's."""
        domain = self.operator.rpartition(".")[0]
        return opset_of(self.model, domain)

    @property
    def types(self) -> str:
        """The element types of its inputs and outputs."""
        graph = self.model.graph
        codes = {_element_type(info.type) for info in (*graph.input, *graph.output)}
        return " ".join(sorted(TensorProto.DataType.Name(code).lower() for code in codes))

    @property
    def _folder(self) -> Path:
        """Where the files of a case are that is not made in memory."""
        assert self.case.model_dir is not None
        return Path(self.case.model_dir)

    @property
    def _light(self) -> Path | None:
        """The file of a network that comes without weights, as part of the package."""
        url = self.case.url or ""
        return Path(onnx.__file__).parent.parent / url if url.startswith("onnx/") else None

    def _ramp(self, file: Path) -> DataSet:
        """What onnx's runner gives such a network, and the outputs stored beside it."""
        inputs = [Runner.generate_dummy_data(info) for info in network_inputs(self.model)]
        stored = sorted(file.parent.glob(f"{file.stem}_output_*.pb"))
        return DataSet(inputs, [_tensor(path) for path in stored])


@cache
def suite() -> tuple[SuiteCase, ...]:
    """All cases, in an order that does not change."""
    with warnings.catch_warnings(action="ignore"), patch.object(base, "process_snippet", _unsaid):
        found = [SuiteCase(k, case) for k in _KINDS for case in loader.load_model_tests(kind=k)]
    return tuple(sorted(found, key=lambda one: (one.kind, one.name)))


@cache
def _by_name() -> dict[str, SuiteCase]:
    return {case.name: case for case in suite()}


def _unsaid(op: str, name: str, export: Any) -> tuple[str, str]:
    """Instead of a text made of the sources of cases, which takes seconds."""
    return name, ""


def _element_type(kind: TypeProto) -> int:
    """The element type of a tensor, or of those in a sequence or optional value."""
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        return _element_type(getattr(kind, which).elem_type)
    return kind.tensor_type.elem_type


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
    return list(map(_tensor, files))


def _tensor(file: Path) -> Array:
    return numpy_helper.to_array(TensorProto.FromString(file.read_bytes()))
