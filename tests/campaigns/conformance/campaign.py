"""onnx's backend suite: each case is computed by compiled code, or refused.

A case passes if its outputs agree, also for other data in the inputs that are not pinned, which
must run the same code.  One whose inputs are all pinned does not count: nothing is left to compile.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
from onnx.reference import ReferenceEvaluator

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx.shapes import network_inputs
from ansorpy.onnx_backend import Prepared, prepare
from tests.campaigns.campaign import Campaign, Tally
from tests.campaigns.conformance.suite import Array, DataSet, SuiteCase, suite

__all__ = ["CONFORMANCE"]

_NOT_BY_REFERENCE = frozenset({"test_scan_sum"})
"""Cases that onnx's reference implementation cannot compute: Scan of operator set 8."""


def _case(rng: np.random.Generator, number: int) -> Tally:
    case = suite()[number]
    try:
        return Tally(Counter([_verdict(case, rng)]))
    except UnsupportedModel as error:
        row = error.rows[0] if error.rows else None
        said = error.message if row is None else f"{row.op}: {row.attribute}, {row.advice}"
        return Tally(Counter([f"refused ({said})"]))
    except Exception as error:
        raise AssertionError(f"{case.name}: {error}") from error


def _verdict(case: SuiteCase, rng: np.random.Generator) -> str:
    ready = prepare(case.model)
    for data in case.data:
        _compare(case, ready.run(list(data.inputs)), data.outputs)
    names = [info.name for info in network_inputs(case.model)]
    left = [name for name in names if name not in ready.pinned]
    if names and not left:
        return "folded (all inputs are pinned)"
    _run_on_other_data(case, ready, names, rng)
    return "passed"


def _run_on_other_data(
    case: SuiteCase, ready: Prepared, names: list[str], rng: np.random.Generator
) -> None:
    """Run the same code with the elements of all other inputs in another order."""
    data: DataSet = case.data[0]
    inputs = [
        given if name in ready.pinned else _permuted(given, rng)
        for name, given in zip(names, data.inputs, strict=True)
    ]
    before = ready.versions
    found = ready.run(inputs)
    assert ready.versions == before, "other data was compiled again"
    feeds = dict(zip(names, inputs, strict=True))
    if case.name not in _NOT_BY_REFERENCE:
        _compare(case, found, ReferenceEvaluator(case.model).run(None, feeds))


def _permuted(given: Any, rng: np.random.Generator) -> Any:
    """The elements of each tensor in *given* in another order."""
    if given is None or isinstance(given, list):
        return given and [_permuted(one, rng) for one in given]
    array = np.asarray(given)
    return rng.permuted(array.reshape(-1)).reshape(array.shape)


def _compare(case: SuiteCase, found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted), f"{len(found)} outputs instead of {len(wanted)}"
    for got, want in zip(found, wanted, strict=True):
        if want is None or isinstance(want, list):
            assert type(got) is type(want), f"{got} instead of {want}"
            if want:
                _compare(case, got, want)
            continue
        want = np.asarray(want)
        assert got.dtype == want.dtype, f"{got.dtype} instead of {want.dtype}"
        assert got.shape == want.shape, f"{got.shape} instead of {want.shape}"
        last = _last_bit(got)
        scale = np.abs(want[np.isfinite(want)].astype(np.float64)).max(initial=0.0) if last else 0.0
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64),
            rtol=max(case.case.rtol, last), atol=max(case.case.atol, 2 * last * scale),
        )  # fmt: skip


def _last_bit(array: Array) -> float:
    """The relative size of the last bit of 16-bit floats and narrower ones, else 0."""
    if array.dtype.kind in "iub" or array.dtype.itemsize > 2:
        return 0.0
    return float(ml_dtypes.finfo(array.dtype).eps)


CONFORMANCE = Campaign("a case of onnx's backend suite", _case, size=2024, short=0, limit_s=60.0)
