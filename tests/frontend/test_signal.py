"""Fourier transforms beside onnx's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend.models import operator_model
from tests.graph.executor import compiled, run_network, run_reference


@pytest.mark.parametrize(
    ("parts", "attributes"), [(1, {}), (1, {"onesided": 1}), (2, {}), (2, {"inverse": 1})]
)
def test_of_a_single_signal(
    parts: int, attributes: dict[str, Any], rng: np.random.Generator
) -> None:
    model = operator_model("DFT", [(7, parts)], opset=17, axis=0, **attributes)
    feeds = {"x0": rng.standard_normal((7, parts), np.float32)}
    (got,) = run_network(compiled(model), feeds)
    (want,) = run_reference(model, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
