"""Counts of n-grams, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import compiled, run_network
from tests.peer import peer

POOL = {
    "ngram_counts": [0, 3, 9], "ngram_indexes": [4, 0, 1, 6, 2, 8],
    "pool_int64s": [2, 5, 1, 1, 2, 2, 1, 5, 5],
}  # fmt: skip


def vectorizer(shape: tuple[int, ...], kind: int = TensorProto.INT64, **more: Any) -> ModelProto:
    one = node("TfIdfVectorizer", ["x"], ["y"], **{**POOL, **more})
    return graph_model([one], {"x": shape}, ["y"], opset=9, types={"x": kind})


@pytest.mark.parametrize("shape", [(11,), (3, 7), (2, 1)])
@pytest.mark.parametrize(
    "more",
    [
        {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 2},
        {"mode": "TF", "min_gram_length": 2, "max_gram_length": 2, "max_skip_count": 3},
        {"mode": "IDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0},
        {"mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 2,
         "weights": [0.5, 2.0, 3.0, 0.25, 5.0, 7.0]},
    ],
)  # fmt: skip
def test_ngrams_are_counted(
    shape: tuple[int, ...], more: dict[str, Any], rng: np.random.Generator
) -> None:
    model = vectorizer(shape, **more)
    feeds = {"x": rng.choice([1, 2, 5, 7], shape)}
    (got,) = run_network(compiled(model), feeds)
    (want,) = peer(model).run(None, feeds)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"pool_strings": ["a"]}, "encode texts as integers"),
        ({"ngram_indexes": [0, 1, 2, 3, 3, 4]}, "give 6 different columns"),
        ({"mode": "IDF", "weights": [1.0, 2.0]}, "give one for each of the 6 n-grams"),
        ({"ngram_counts": [0, 4]}, "where the n-grams of each length start"),
    ],
)
def test_what_cannot_be_counted_is_refused(more: dict[str, Any], said: str) -> None:
    lengths = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0}
    with pytest.raises(UnsupportedModel, match=said):
        load(vectorizer((5,), **{**lengths, **more}))
