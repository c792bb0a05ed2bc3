"""Every operator that can be imported is drawn, and what families draw can be grown."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ansorpy.frontend.onnx.registry import CONTROL, OPERATORS
from tests.campaigns.networks import families
from tests.campaigns.networks.families import FAMILIES, NOT_DRAWN
from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Unstable

_FOLDER = Path(families.__file__).parent
_TRIES = 30


def named() -> set[str]:
    """The names of operators in the modules of families."""
    return {
        node.value
        for path in _FOLDER.glob("*.py")
        if path.stem != "__init__"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_operator_is_drawn_or_there_is_a_reason() -> None:
    drawn, known = named(), OPERATORS.keys() | CONTROL.keys()
    assert sorted(known - drawn - NOT_DRAWN.keys()) == []
    assert sorted(drawn & NOT_DRAWN.keys()) == []
    assert sorted(NOT_DRAWN.keys() - known) == []


@pytest.mark.parametrize(
    "family", FAMILIES, ids=lambda family: f"{family.__module__}.{family.__name__}"
)
def test_a_family_grows_networks(family: Callable[[Growing], None]) -> None:
    """Each adds nodes of its own at some of the operator sets, whatever it is drawn after."""
    for seed in range(_TRIES):
        rng = np.random.default_rng(seed)
        net = Growing(rng, np.dtype(np.float32), 20 if seed % 2 else 26 + seed % 4, strict=True)
        net.new_input(net.shape(2, 4))
        try:
            family(net)
        except Unstable:
            continue
        if net.nodes:
            net.model(net.results())
            return
    pytest.fail(f"nothing was drawn in {_TRIES} tries")
