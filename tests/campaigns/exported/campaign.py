"""The campaign: each stored graph is compiled with no options, and run at several sizes."""

from __future__ import annotations

import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto

import ansorpy as ap
from benchmarks.exported.catalogue import Network, by_name
from benchmarks.exported.stored import restored, stored_names
from tests.campaigns.campaign import Campaign, Tally
from tests.campaigns.exported.compare import assert_agree, assert_same_boxes

__all__ = ["EXPORTED"]

_QUICKEST = ("experts.dynamo", "scaled_logistic.sklearn")


def _case(rng: np.random.Generator, number: int) -> Tally:
    name = _ordered()[number]
    tally = Tally()
    try:
        network = by_name(name)
        worst = _compared(restored(name), network, rng)
    except Exception as error:
        raise AssertionError(f"{name}: {error}") from error
    tally.kinds[network.kind] += 1
    tally.note("difference", worst, name)
    return tally


def _compared(model: ModelProto, network: Network, rng: np.random.Generator) -> float:
    """Compile *model*, and compare it at all sizes; returns the largest difference."""
    logging.getLogger("ansorpy").setLevel(logging.ERROR)
    with TemporaryDirectory() as folder:
        compiled = ap.compile(model, effort="none", db=Path(folder, "tune.db"), threads=1)
    session = _session(model)
    names = [output.name for output in session.get_outputs()]
    read = {port.name for port in session.get_inputs()}
    worst = 0.0
    for sizes in network.sizes:
        feeds = {n: a for n, a in network.feeds(rng, sizes).items() if n in read}
        wanted: Any = session.run(None, feeds)
        found = compiled.run(None, feeds)
        try:
            if network.selects:
                worst = max(worst, assert_same_boxes(found, wanted))
            else:
                worst = max(worst, assert_agree(names, found, wanted))
        except AssertionError as error:
            raise AssertionError(f"at {dict(sizes)}: {error}") from None
    return worst


def _session(model: ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _ordered() -> list[str]:
    """The stored graphs, those that compile quickest first."""
    return [*_QUICKEST, *(name for name in stored_names() if name not in _QUICKEST)]


EXPORTED = Campaign(
    "compiles a network as exporters write it, and compares it with onnxruntime at several sizes",
    _case,
    size=len(_ordered()),
    short=len(_QUICKEST),
    limit_s=300.0,
)
