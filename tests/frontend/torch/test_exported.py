"""Modules of torch compiled through ``torch.export``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

import torch
import torch.nn.functional as F
from torch import nn

import ansorpy as ap
from ansorpy.errors import UnsupportedModel, UsageError
from ansorpy.frontend.onnx import load
from ansorpy.frontend.torch.exported import network_of
from ansorpy.size_ranges import SizeRange
from tests.peer import peer


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(6, 8), nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x)).relu()


class Branched(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[1] > 5 else x * 3


def test_a_module_compiles_to_a_library(tmp_path: Path) -> None:
    module, x = Normed().eval(), torch.randn(3, 6)
    batch = torch.export.Dim("batch", min=1, max=16)
    model = ap.compile(
        module, (x,), dynamic_shapes={"x": {0: batch}}, effort="none", db=tmp_path / "t.db"
    )
    assert [str(extent) for extent in model.get_inputs()[0].shape] == ["batch", "6"]
    loaded = ap.load(model.export(tmp_path / "normed.so"))
    for rows in (1, 5):
        x = torch.randn(rows, 6)
        with torch.no_grad():
            want = module(x).numpy()
        np.testing.assert_allclose(loaded.run(None, {"x": x.numpy()})[0], want, 1e-4, 1e-5)


def test_sizes_are_rounded_down_below_zero_too() -> None:
    class Padded(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            n = x.shape[1]
            return F.pad(x, (0, -(-n // 8) * 8 - n))

    columns = torch.export.Dim("columns", min=2, max=60)
    network = network_of(Padded(), (torch.randn(2, 5),), {"x": {1: columns}})
    session = peer(network.model)
    for size, want in ((3, 8), (8, 8), (17, 24)):
        [padded] = session.run(None, {"x": np.ones((2, size), np.float32)})
        assert padded.shape == (2, want)
    graph = load(network.model, dims={"columns": (2, 60)})
    assert str(graph.types[graph.outputs[0].value].shape[1]) == "8*((columns + 7)//8)"


def test_sizes_that_a_branch_does_not_take_are_out_of_range() -> None:
    columns = torch.export.Dim("columns", min=6)
    network = network_of(Branched(), (torch.randn(2, 9),), {"x": {1: columns}})
    assert network.dims({}, {}) == {"columns": SizeRange(6, 512)}
    assert network.dims({"columns": (7, 900)}, {}) == {"columns": (7, 900)}
    assert network.dims({}, {"x": (2, 9)}) == {}
    with pytest.raises(UsageError, match="from 6 to any size, not for 5,9"):
        network.dims({"columns": [5, 9]}, {})
    with pytest.raises(UsageError, match="from 6 to any size, not for 5"):
        network.dims({}, {"x": (2, 5)})


def test_sizes_of_modules_with_a_least_size_are_given_by_shape(tmp_path: Path) -> None:
    columns = torch.export.Dim("columns", min=6)
    model = ap.compile(
        Branched(), (torch.randn(2, 9),), dynamic_shapes={"x": {1: columns}},
        shapes={"x": (2, 9)}, effort="none", db=tmp_path / "t.db",
    )  # fmt: skip
    assert list(model.get_inputs()[0].shape) == [2, 9]


def test_usual_sizes_keep_their_step() -> None:
    height = torch.export.Dim("h", min=6)
    network = network_of(Branched(), (torch.randn(2, 9, 9),), {"x": {1: height}})
    assert network.dims({}, {}) == {"h": SizeRange(32, 1280, 32)}


def test_inputs_keep_their_names_and_parameters_are_constants() -> None:
    network = network_of(Normed().eval(), (torch.randn(2, 6),))
    names = [info.name for info in network.model.graph.input]
    assert [name for name in names if name not in network.constants] == ["x"]
    assert network.constants["p_linear_weight"].shape == (8, 6)


class Pair(nn.Module):
    def forward(self, xs: list[torch.Tensor], y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return xs[0] + xs[1], y * 2


def test_dimensions_have_the_names_that_nested_inputs_are_given() -> None:
    rows, columns = (torch.export.Dim(name, min=1, max=8) for name in ("rows", "columns"))
    inputs = [torch.randn(3, 2), torch.randn(3, 2)], torch.randn(4, 5)
    network = network_of(Pair(), inputs, {"y": {0: columns}, "xs": [{0: rows}, {0: rows}]})
    dims = [info.type.tensor_type.shape.dim[0].dim_param for info in network.model.graph.input]
    assert dims == ["rows", "rows", "columns"]
    shapes = torch.export.ShapesCollection()
    shapes[inputs[1]] = {0: columns}
    assert network_of(Pair(), inputs, shapes).limits == {"columns": (1, 8)}
    program = torch.export.export(Pair(), inputs, dynamic_shapes=shapes)
    named = {"xs": [None, None], "y": {0: columns}}
    assert network_of(program, dynamic_shapes=named).limits == {"columns": (1, 8)}


def test_dynamic_shapes_may_be_empty_or_those_of_other_inputs() -> None:
    inputs = [torch.randn(3, 2), torch.randn(3, 2)], torch.randn(4, 5)
    other = torch.export.AdditionalInputs()
    other.add(([torch.randn(4, 2), torch.randn(4, 2)], inputs[1]))
    for shapes, is_open in (({}, [False] * 3), (other, [True, True, False])):
        graph = network_of(Pair(), inputs, shapes).model.graph
        first = [info.type.tensor_type.shape.dim[0] for info in graph.input]
        assert [bool(dim.dim_param) for dim in first] == is_open


def test_operators_without_translation_are_all_listed() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.lgamma(x) + torch.digamma(x)

    with pytest.raises(UnsupportedModel, match="2 operator.* of Two cannot") as caught:
        network_of(Two(), (torch.randn(3),))
    assert [row.op for row in caught.value.rows] == ["lgamma.default", "digamma.default"]


def test_a_module_that_changes_a_buffer_is_refused() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x + self.count

    with pytest.raises(UsageError, match="the module changes count in place"):
        network_of(Counter(), (torch.randn(3),))


def test_a_module_needs_example_inputs() -> None:
    with pytest.raises(UsageError, match="for example inputs"):
        network_of(Normed())


def test_a_module_on_another_device_is_refused() -> None:
    with pytest.raises(UsageError, match=r"(?s)the module is on meta.*module\.cpu\(\)"):
        ap.compile(Normed().eval().to("meta"), (torch.randn(3, 6, device="meta"),), effort="none")


def test_example_inputs_are_a_tuple() -> None:
    with pytest.raises(UsageError, match=r"(?s)a tuple, not one tensor.*pass \(x,\)"):
        ap.compile(Normed(), torch.randn(3, 6), effort="none")


def test_what_a_module_is_given_by_name_is_a_mapping() -> None:
    wrong: Any = "rows=8"
    with pytest.raises(UsageError, match="dims= takes values by name"):
        ap.compile(Normed(), (torch.randn(3, 6),), dims=wrong, effort="none")


def test_what_torch_cannot_export_is_refused_with_its_reason() -> None:
    with pytest.raises(
        UnsupportedModel, match="torch.export fails for Normed: .*reduction dim"
    ) as raised:
        ap.compile(Normed().eval(), (torch.randn(3, 5),), effort="none")
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(UsageError, match="(?s)is not a network.*torch module"):
        ap.compile(torch.relu, (torch.randn(3),), effort="none")
