"""Values without elements: they are constants, and join, broadcast and reduce as in onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.models import operator_model
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net

def rotated(net: Net, x: str, width: int) -> str:
    """The first *width* columns turned by angles, the others as they are."""
    halves = [net.op("Slice", x, *(net.constant([v], np.int64) for v in cut))
              for cut in ((0, width, -1), (width, 1 << 40, -1))]  # fmt: skip
    turned = net.op("Mul", halves[0], net.normal(5, width))
    return net.op("Concat", turned, halves[1], axis=-1)


@pytest.mark.parametrize("width", [4, 8])
def test_a_rotary_embedding_may_turn_whole_rows(width: int, rng: np.random.Generator) -> None:
    net = Net(x=(2, 3, 5, 8))
    assert_same_as_onnxruntime(net.model(rotated(net, net.op("Tanh", "x"), width)), rng)


def test_a_split_may_leave_nothing_to_a_part(rng: np.random.Generator) -> None:
    sizes = np.asarray([2, 0, 3, 0], np.int64)
    assert_same_as_onnxruntime(operator_model("Split", [(5, 3)], [sizes], outputs=4), rng)
