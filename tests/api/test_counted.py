"""Networks that sort and count, compiled from the model to results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import ansorpy as ap
from ansorpy.errors import UsageError
from tests.frontend.models import graph_model, node


def best_rows() -> ModelProto:
    """The rows of ``x`` at the places of the three largest ``scores``, if these are above 0."""
    nodes = [
        node("TopK", ["scores", "three"], ["best", "places"]),
        node("Greater", ["best", "zero"], ["keeps"]),
        node("Compress", ["places", "keeps"], ["kept"]),
        node("Gather", ["x", "kept"], ["y"], axis=0),
    ]
    held = {"three": np.asarray([3]), "zero": np.asarray(0, np.float32)}
    types = {"kept": TensorProto.INT64}
    return graph_model(nodes, {"x": (9, 4), "scores": (9,)}, ["y", "kept"], held, types=types)


def test_tuned_programs_sort_and_count(tmp_path: Path, rng: np.random.Generator) -> None:
    model = ap.compile(best_rows(), effort="none", threads=1, db=tmp_path / "records.db")
    for above in (0, 2, 9):
        scores = -rng.random(9).astype(np.float32)
        scores[rng.permutation(9)[:above]] *= -1
        x = rng.standard_normal((9, 4)).astype(np.float32)
        kept = np.argsort(-scores, kind="stable")[: min(above, 3)]
        y, places = model.run(None, {"x": x, "scores": scores})
        np.testing.assert_array_equal(places, kept)
        np.testing.assert_array_equal(y, x[kept])


def test_programs_for_gpus_do_not_count() -> None:
    with pytest.raises(UsageError, match="counts sizes .kept.count=0..3, true_places., which"):
        ap.compile(best_rows(), target="sm_90", effort="none")
