"""onnx's own node tests: each case of an operator with an importer is computed or refused."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.backend.test.case.node as node_cases
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case import base
from onnx.backend.test.case.test_case import TestCase

from ansorpy.errors import AnsorpyError
from ansorpy.frontend.onnx import load
from ansorpy.frontend.onnx.context import element_type_of
from ansorpy.frontend.onnx.registry import CONTROL, OPERATORS, operator_of
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph import optimize, partition
from ansorpy.ir.dtypes import as_dtype
from ansorpy.ir.narrow import Narrow, element_type
from tests.budget import some
from tests.graph.executor import Array, run_network

REFUSED = {
    "Attention": ("output qk_matmul_output", "nonpad_kv_seqlen"),
    "Pow": ("element type",),
}
"""What the importer says of the cases that it does not translate."""

IMPORTED = sorted({*OPERATORS, *CONTROL})

FIRST_INPUT = (
    "AffineGrid", "CenterCropPad", "Col2Im", "CumProd", "CumSum", "DFT", "Expand", "MaxUnpool",
    "OneHot", "Pad", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Reshape", "Resize",
    "STFT", "Slice", "Split", "Squeeze", "Tile", "Trilu", "Unsqueeze", "Upsample",
)  # fmt: skip
"""Operators of which some cases read no other input at run time."""

NO_INPUT = (
    "BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "Loop", "MelWeightMatrix",
    "Range",
)  # fmt: skip
"""Operators of which some cases read no input at run time."""

WITHOUT_CASES = {
    "ConcatFromSequence", "GlobalLpPool", "MaxRoiPool", "Multinomial", "Optional", "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Scan", "SequenceAt",
    "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
    "SequenceMap", "SimplifiedLayerNormalization", "SplitToSequence",
    *(f"ai.onnx.ml.{name}" for name in (
        "FeatureVectorizer", "Imputer", "LabelEncoder", "LinearClassifier", "LinearRegressor",
        "Normalizer", "OneHotEncoder", "SVMClassifier", "SVMRegressor", "Scaler",
        "TreeEnsembleClassifier", "TreeEnsembleRegressor",
    )),
    *(name for name in IMPORTED if name.startswith("com.microsoft.")),
}  # fmt: skip
"""Operators that onnx has no case of, or none of numbers."""


DRAWN = re.compile("test_(bernoulli|training_dropout(?!_zero))")
"""Cases of random numbers, which are not numpy's: their shapes and types are compared."""


@cache
def cases() -> dict[str, list[TestCase]]:
    """The cases of each operator with an importer; each module registers its own."""
    names = {operator.rpartition(".")[2] for operator in IMPORTED}
    for path in sorted(Path(node_cases.__file__).parent.rglob("*.py")):
        if set(re.findall(r'make_node\(\s*"(\w+)"', path.read_text())) & names:
            with warnings.catch_warnings(action="ignore"), made_quickly():
                place = path.relative_to(Path(node_cases.__file__).parent).with_suffix("")
                importlib.import_module(".".join([node_cases.__name__, *place.parts]))
    found: dict[str, list[TestCase]] = {name: [] for name in IMPORTED}
    for case in node_cases._NodeTestCases:
        assert case.model is not None
        kinds = {operator_of(n) for n in case.model.graph.node}
        if len(kinds) == 1 and kinds <= set(IMPORTED) and has_our_types(case.model):
            found[kinds.pop()].append(case)
    return found


@contextmanager
def made_quickly() -> Iterator[None]:
    """Modules that are imported here do without what takes seconds.

    No text is made of their sources, and onnx's own pooling sees smaller volumes.
    """
    randn = np.random.randn

    def smaller(*shape: int) -> Any:
        return randn(*(1, 3, 9, 9, 9) if shape == (1, 3, 32, 32, 32) else shape)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(base, "process_snippet", lambda op, name, export: (name, ""))
        patched.setattr(np.random, "randn", smaller)
        yield


def has_our_types(model: ModelProto) -> bool:
    """False for texts, sequences and complex numbers."""
    for info in (*model.graph.input, *model.graph.output):
        tensor = info.type.tensor_type
        try:
            element_type_of(tensor.elem_type)
        except Unsupported:
            return False
    return True


def array(value: Any) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def fixed(model: ModelProto, arrays: Sequence[Array], kept: int) -> ModelProto:
    """*model* with all inputs but the first *kept* as constants: shapes and axes must be known."""
    copy = ModelProto()
    copy.CopyFrom(model)
    names = [info.name for info in copy.graph.input]
    for name, value in list(zip(names, arrays, strict=True))[kept:]:
        copy.graph.initializer.append(numpy_helper.from_array(value, name))
    del copy.graph.input[kept:]
    return copy


def attempts(
    operator: str, case: TestCase
) -> Iterator[tuple[ModelProto, Sequence[Array], Sequence[Array]]]:
    """The case as it is, and where its operator may need that, with inputs as constants."""
    assert case.model is not None and case.data_sets is not None
    inputs, outputs = (list(map(array, values)) for values in case.data_sets[0])
    yield case.model, inputs, outputs
    for kept in (1, 0) if operator in NO_INPUT else (1,) if operator in FIRST_INPUT else ():
        yield fixed(case.model, inputs, kept), inputs[:kept], outputs


def refusal(operator: str, case: TestCase) -> str:
    """Why the case is not translated; nothing where it is and its numbers are right."""
    reason = ""
    for model, inputs, outputs in attempts(operator, case):
        try:
            network = partition(optimize(load(model)))
        except AnsorpyError as error:
            reason = str(error)
            continue
        feeds = dict(zip((info.name for info in network.inputs), inputs, strict=False))
        for got, want in zip(run_network(network, feeds), outputs, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype), case.name
            if isinstance(element_type(got.dtype.name), Narrow):
                got, want = got.astype(np.float32), want.astype(np.float32)
            last = float(ml_dtypes.finfo(got.dtype).eps) if as_dtype(got.dtype).is_float else 0.0
            if DRAWN.match(case.name):
                continue
            finite = np.abs(want[np.isfinite(want)].astype(np.float64))
            np.testing.assert_allclose(
                got.astype(np.float64), want.astype(np.float64), max(case.rtol, last),
                max(case.atol, 2 * last * float(finite.max(initial=0.0))), err_msg=case.name,
            )  # fmt: skip
        return ""
    return reason


@pytest.mark.parametrize("operator", IMPORTED)
def test_cases_of_onnx(operator: str) -> None:
    # `make conformance` runs all cases of all operators.
    reasons = {case.name: refusal(operator, case) for case in some(cases()[operator])}
    for name, reason in reasons.items():
        expected = REFUSED.get(operator, ())
        assert not reason or any(part in reason for part in expected), f"{name}: {reason}"
    assert ("" in reasons.values()) is (operator not in WITHOUT_CASES)
