"""The networks that the benchmark writes: valid, supported, and numbers of a sane size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.report.inputs import input_specs, random_feeds
from benchmarks.nets import WRITTEN

# The others hold 100 MB of weights and more; `python -m benchmarks.networks` checks them all.
SMALL = ("dcgan", "decoder_step", "lstm_tagger", "mobilenet_v2", "vit_tiny")


def outputs(model: onnx.ModelProto) -> list[NDArray[Any]]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return list(session.run(None, random_feeds(input_specs(model), 3)))


@pytest.mark.parametrize("name", SMALL)
def test_a_network_is_supported_and_its_numbers_are_sane(name: str) -> None:
    model = WRITTEN[name](1, 0)
    for value in outputs(model):
        assert 0.02 < value.std() < 50 and np.isfinite(value).all()
    network = partition(optimize(load(model)))
    assert len(network.workloads()) <= len(network.calls)


def test_weights_are_those_of_the_seed() -> None:
    first, same, other = (outputs(WRITTEN["dcgan"](1, seed))[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert np.abs(first - other).max() > 1e-3


def test_a_batch_is_the_first_dimension() -> None:
    assert outputs(WRITTEN["vit_tiny"](2, 0))[0].shape == (2, 1000)
