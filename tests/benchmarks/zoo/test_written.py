"""The networks that the benchmark writes: valid, supported, and numbers of a sane size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from ansorpy.evaluation.inputs import random_feeds
from ansorpy.evaluation.onnx_inputs import input_specs
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from benchmarks.dynamic.suite import FULL, TINY
from benchmarks.zoo import WRITTEN
from tests.peer import peer

# The others hold 100 MB of weights and more; `python -m benchmarks.networks` checks them all.
SMALL = ("dcgan", "lstm_tagger", "mobilenet_v2", "vit_tiny")


def outputs(model: onnx.ModelProto) -> list[NDArray[Any]]:
    session = peer(model)
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
    assert outputs(WRITTEN["dcgan"](2, 0))[0].shape == (2, 3, 64, 64)


@pytest.mark.parametrize("name", list(TINY))
def test_a_network_of_any_size_runs_at_many_and_is_supported_at_one(name: str) -> None:
    tiny = TINY[name]
    model = tiny.write(0)
    session = peer(model)
    for size in (tiny.low, tiny.low + 1, 37 if tiny.low > 1 else 7, tiny.high):
        feeds = random_feeds(input_specs(model, dims={tiny.dim: size}), 3)
        for value in session.run(None, feeds):
            assert 0.02 < value.std() < 50 and np.isfinite(value).all()
    network = partition(optimize(load(model, dims={tiny.dim: 37 if tiny.low > 1 else 7})))
    assert len(network.workloads()) <= len(network.calls)


def test_a_token_does_not_see_what_is_masked() -> None:
    model, rng = TINY["bert"].write(0), np.random.default_rng(0)
    session = peer(model)
    ids = rng.integers(0, 50, (1, 11))
    feeds = {"token_type_ids": np.zeros_like(ids), "attention_mask": (np.arange(11) < 5)[None] * 1}
    first, _ = session.run(None, {"input_ids": ids, **feeds})
    changed = np.where(np.arange(11) < 5, ids, 49 - ids)
    second, _ = session.run(None, {"input_ids": changed, **feeds})
    np.testing.assert_allclose(first[0, :5], second[0, :5], atol=1e-6)
    assert np.abs(first[0, 5:] - second[0, 5:]).max() > 1e-3


def test_both_layouts_of_caches_give_the_same_tokens() -> None:
    scores = []
    for name in ("decoder", "decoder_tokens_first"):
        model = TINY[name].write(0)
        session = peer(model)
        caches = random_feeds(input_specs(model, dims={"past": 0}), 3)
        for token in (3, 14, 15):
            feeds = caches | {"ids": np.array([[token]])}
            logits, *caches_list = session.run(None, feeds)
            names = [o.name.replace("present", "past") for o in session.get_outputs()[1:]]
            caches = dict(zip(names, caches_list, strict=True))
        assert all(3 in value.shape[1:3] for value in caches.values())
        scores.append(logits)
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_every_network_of_any_size_is_tried_out_in_small() -> None:
    assert set(FULL) == set(TINY)
