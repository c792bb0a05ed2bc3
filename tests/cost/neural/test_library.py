"""Networks without torch: they are listed, and making one says what to install."""

from __future__ import annotations

import sys

import pytest

from ansorpy.cost.models import MODELS
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.errors import MissingDependency

NETWORKS = ["tenset", "tlp", "mtl_tlp", "pruner", "tiramisu", "halide", "value_lstm"]


@pytest.mark.parametrize("name", NETWORKS)
def test_without_torch_a_network_is_described_and_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    made = MODELS.factory(name)
    assert isinstance(made, type) and issubclass(made, NetworkModel)
    assert MODELS.descriptions()[name].endswith(").")
    with pytest.raises(MissingDependency, match=f'"{made.__name__}" is a network') as error:
        made()
    assert error.value.hint == "pip install 'ansorpy[torch]'"
