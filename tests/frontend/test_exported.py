"""Networks as exporters write them: each imports as it comes and agrees with onnxruntime.

The programs are the loops of the definitions; the campaign ``exported`` compiles them as users do.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest

from ansorpy.frontend.onnx import load
from benchmarks.zoo.exported.catalogue import by_name
from benchmarks.zoo.exported.stored import restored, stored_names
from tests.campaigns.exported.campaign import compared, plainly_compiled

SMALL = (
    "columns_forest.sklearn", "gpt2.dynamo", "scaled_logistic.sklearn", "support_vectors.sklearn",
    "timm_vit.dynamo", "unet.script", "whisper.script",
)  # fmt: skip
"""At least one of each exporter, some with sizes, a cache and a spectrum."""


@pytest.mark.parametrize("name", SMALL)
def test_a_small_network_agrees_at_all_sizes(name: str, rng: np.random.Generator) -> None:
    model = restored(name)
    assert compared(model, plainly_compiled(model), by_name(name), rng) < 1e-3


@pytest.mark.parametrize("name", [n for n in stored_names() if n not in SMALL])
def test_a_network_imports_as_it_comes(name: str) -> None:
    assert load(restored(name)).nodes


def test_weights_are_drawn_again() -> None:
    """The same seed gives the same ones; what is no weight is kept."""
    one, same, other = (restored("swin.dynamo", seed) for seed in (1, 1, 2))
    assert one == same and one != other
    kept = {t.name: t for t in other.graph.initializer if t.data_type != 1}
    assert kept and all(t == kept[t.name] for t in one.graph.initializer if t.data_type != 1)


def test_maps_become_matrices(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        graph = load(restored("scaled_logistic.sklearn"))
    shapes = {o.name: graph.types[o.value].shape for o in graph.outputs}
    assert len(shapes["output_probability"]) == 2 and shapes["output_probability"][1] == 3
    assert "output_probability is a matrix with a column for each class" in caplog.text
