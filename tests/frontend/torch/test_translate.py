"""Which dimensions the inputs of a translated graph have."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import Graph
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)

from ansorpy.frontend.torch.translate import translate


def test_an_extent_that_becomes_a_dimension_tells_no_symbol() -> None:
    """``2*s0 - 7`` may be below 0 as far as ansorpy sees, so ``s0*s1`` is a dimension, too."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    context = StatelessSymbolicContext([DimDynamic.DYNAMIC] * 2)
    first, second = mode.from_tensor(torch.empty(7, 5), symbolic_context=context).shape
    graph = Graph()
    for number, size in enumerate((2 * first - 7, second, first * second)):
        node = graph.placeholder(f"x{number}")
        with mode:
            node.meta["val"] = torch.empty(size)
    last = graph.call_function(torch.ops.aten.neg.default, (node,))
    last.meta["val"] = node.meta["val"]
    graph.output((last,))
    kinds = [name.translate({ord(c): None for c in "0123456789"})
             for name in translate(graph, "sizes").dims]  # fmt: skip
    assert kinds == ["*s - ", "s", "s*s"]
