"""onnx's backend suite: each case is computed by compiled code, or refused.

A case passes if onnx's own runner accepts its outputs, and if other data in the inputs that are not
pinned run the same code and agree with another engine: onnxruntime or onnx's reference, whichever
computes what the case expects of its own data.  One whose inputs are all pinned does not count:
nothing is left to compile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from onnx.backend.test.runner import Runner

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx.shapes import network_inputs
from ansorpy.onnx_backend import Prepared, prepare
from tests.campaigns.campaign import Campaign, Tally
from tests.campaigns.conformance.scope import DRAWN, is_drawn, out_of_scope
from tests.campaigns.conformance.suite import Array, DataSet, SuiteCase, suite
from tests.campaigns.networks.engines import by_onnxruntime, by_reference

__all__ = ["CONFORMANCE", "ON_A_GPU"]


def _case(rng: np.random.Generator, number: int, device: str = "CPU") -> Tally:
    """Verdict and reason of one case on *device*, as one word."""
    case = suite()[number]
    reason = out_of_scope(case.name)
    if reason:
        return Tally(Counter([f"out of scope: {reason}"]))
    try:
        return Tally(Counter([_verdict(case, rng, device)]))
    except UnsupportedModel as error:
        return Tally(Counter([f"refused: {_refusal(error)}"]))


def _refusal(error: UnsupportedModel) -> str:
    if not error.rows:
        return error.message
    row = error.rows[0]
    return f"{row.op}: {row.attribute}: {row.advice}"


def _verdict(case: SuiteCase, rng: np.random.Generator, device: str) -> str:
    ready = prepare(case.model, device, threads=1)
    for data in case.data:
        found = ready.run(list(data.inputs))
        try:
            Runner.assert_similar_outputs(
                data.outputs, found, case.case.rtol, case.case.atol, case.name
            )
        except AssertionError:
            if not is_drawn(case.name):
                raise
            return f"failed: {DRAWN}"
    names = [info.name for info in network_inputs(case.model)]
    if names and all(name in ready.pinned for name in names):
        return "folded: all inputs decide shapes"
    _run_on_other_data(case, ready, names, rng)
    return "passed: "


def _run_on_other_data(
    case: SuiteCase, ready: Prepared, names: list[str], rng: np.random.Generator
) -> None:
    """Run the same code with the elements of all other inputs in another order, or halved where
    they decide sizes."""
    data: DataSet = case.data[0]
    free = [n for n, name in enumerate(names) if name not in ready.pinned]
    floats = [n for n in free if _is_float(data.inputs[n])]
    inputs = [
        given if n not in (floats or free)
        else _halved(given) if ready.bounds
        else _permuted(given, rng)
        for n, given in enumerate(data.inputs)
    ]  # fmt: skip
    before = ready.versions
    found = ready.run(inputs)
    assert ready.versions == before, "other data were compiled again"
    own, other = (dict(zip(names, values, strict=True)) for values in (data.inputs, inputs))
    want = None if is_drawn(case.name) else _by_another_engine(case, own, other)
    if want is not None:
        _compare(case, found, want)


def _by_another_engine(case: SuiteCase, own: Mapping[str, Any], other: Mapping[str, Any]) -> Any:
    """What an engine computes of *other* data that is right about the case's *own*, if any is."""
    for run in (by_onnxruntime, by_reference):
        try:
            _compare(case, run(case.model, own) or (), case.data[0].outputs)
            return run(case.model, other)
        except Exception:  # of this engine, which may raise anything
            continue
    return None


def _is_float(given: Any) -> bool:
    """Whether elements may change places without becoming wrong indices."""
    if given is None or isinstance(given, list):
        return all(map(_is_float, given or ()))
    return np.asarray(given).dtype.kind not in "iu"


def _permuted(given: Any, rng: np.random.Generator) -> Any:
    """The elements of each tensor in *given* in another order."""
    if given is None or isinstance(given, list):
        return given and [_permuted(one, rng) for one in given]
    array = np.asarray(given)
    return rng.permuted(array.reshape(-1)).reshape(array.shape)


def _halved(given: Any) -> Any:
    """Half of all numbers, towards 0."""
    return (np.asarray(given) / 2).astype(given.dtype)


def _compare(case: SuiteCase, found: Any, wanted: Any) -> None:
    """Refuse results that differ by more than the case allows, and than roundings explain."""
    assert len(found) == len(wanted), f"{len(found)} outputs instead of {len(wanted)}"
    for got, want in zip(found, wanted, strict=True):
        if want is None or isinstance(want, list):
            assert type(got) is type(want), f"{got} instead of {want}"
            _compare(case, got or [], want or [])
            continue
        held = np.asarray(want)
        assert got.dtype == held.dtype, f"{got.dtype} instead of {held.dtype}"
        assert got.shape == held.shape, f"{got.shape} instead of {held.shape}"
        last = _last_bit(got)
        large = np.abs(held[np.isfinite(held)].astype(np.float64)).max(initial=0.0) if last else 0.0
        np.testing.assert_allclose(
            got.astype(np.float64), held.astype(np.float64),
            rtol=max(case.case.rtol, 2 * last), atol=max(case.case.atol, 8 * last * large),
            err_msg="other data",
        )  # fmt: skip


def _last_bit(array: Array) -> float:
    """The relative size of the last bit of floats, else 0."""
    if array.dtype.kind in "iub":
        return 0.0
    return float(ml_dtypes.finfo(array.dtype).eps)


CONFORMANCE = Campaign(
    "a case of onnx's backend suite", _case, size=2033, short=0, limit_s=300.0, pinned=True
)
ON_A_GPU = replace(CONFORMANCE, case=partial(_case, device="CUDA"))
"""The same with programs for this machine's GPU."""
