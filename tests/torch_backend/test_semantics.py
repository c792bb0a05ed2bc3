"""What torch promises about captured functions holds with this backend, too."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

import torch
import torch.nn.functional as F
from torch import nn

from ansorpy.api.repacking import compile_programs
from ansorpy.errors import UsageError
from ansorpy.measure.records.database import Database
from ansorpy.torch_backend import Backend
from ansorpy.torch_backend import backend as ansorpy_backend
from tests.torch_backend.compared import agrees


def test_the_name_needs_no_import(tmp_path: Path) -> None:
    """The entry point; a checkout that is not installed has none."""
    if "ansorpy" not in torch._dynamo.list_backends():
        pytest.skip("this checkout of ansorpy is not installed")
    compiled = torch.compile(
        lambda x: x * 2 + 1, backend="ansorpy", options={"db": tmp_path / "t.db"}
    )
    torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 3.0))


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UsageError, match='there is no option "speed"'):
        Backend(speed=1)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match='unknown effort "fast"'):
        Backend(effort="fast")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="(?s)no mode.*options="):
        ansorpy_backend(torch.fx.symbolic_trace(nn.Identity()), [], mode="max-autotune")


def test_parts_show_themselves(backend: Backend) -> None:
    agrees(backend, lambda x: torch.lgamma(x.exp()).relu(), torch.randn(3))
    assert str(backend).startswith("<Backend effort='none', ") and "1 graphs>" in str(backend)
    [graph] = backend.graphs
    assert str(graph.segments[0]) == "<Segment segment_0: 1 operators, compiled 1 times>"


def test_graph_breaks_make_several_graphs(backend: Backend) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() * 2
        torch._dynamo.graph_break()
        return y.cos() + x

    agrees(backend, function, torch.randn(5, 3))
    assert len(backend.graphs) == 2


def test_inputs_that_are_changed(backend: Backend) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        y[:, 1:].copy_(x[:, :-1] * 2)
        return x @ y.T

    agrees(backend, function, torch.randn(3, 4), torch.randn(3, 4))


def test_results_that_are_views(backend: Backend) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 2
        return y, y.T, y[0], x.view(-1), x

    compiled = agrees(backend, function, torch.randn(3, 4))
    x = torch.randn(3, 4)
    results = compiled(x)
    assert results[3].data_ptr() == x.data_ptr() and results[4] is x
    assert results[1].data_ptr() == results[0].data_ptr()


def test_inputs_that_are_not_contiguous(backend: Backend) -> None:
    agrees(backend, lambda x, y: x.exp() + y, torch.randn(4, 3).T, torch.randn(6, 8)[::2, 1::2])


def test_a_dynamic_batch_is_compiled_once(backend: Backend) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    compiled = torch.compile(model, backend=backend, dynamic=True)
    for batch in (3, 5, 17):
        agrees(backend, model, torch.randn(batch, 6), compiled=compiled)
    [graph] = backend.graphs
    assert [segment.packed for segment in graph.segments] == [1]


def test_square_images_of_any_size(backend: Backend) -> None:
    """Their pixels are a square of one size, less the border that convolutions take.

    GroupNorm asks for the size of a result, which ends no segment.
    """
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 1), nn.GroupNorm(2, 4)).eval()
    compiled = torch.compile(model, backend=backend, dynamic=True)
    agrees(backend, model, torch.randn(3, 2, 7, 7), compiled=compiled)
    [graph] = backend.graphs
    assert len(graph.segments) == 1 and not graph.eager


def test_a_size_above_the_range_is_compiled_again(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansorpy.torch_backend.segment.FIRST_SIZE", 8)
    compiled = torch.compile(lambda x: x.exp() + 1, backend=backend, dynamic=True)
    for size, packed in ((1 << 2, 1), (7, 1), (200, 2)):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), x.exp() + 1, rtol=1e-4, atol=1e-5)
        assert backend.graphs[0].segments[0].packed == packed


def test_a_size_that_only_an_expression_of_it_tells(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The segment behind lgamma gets no tensor of the size itself."""
    monkeypatch.setattr("ansorpy.torch_backend.segment.FIRST_SIZE", 8)

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(F.pad(x, (0, len(x) + 3), value=2.5)).relu()

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for size in (20, 200):
        agrees(backend, function, torch.rand(size) + 2, compiled=compiled)
    [graph] = backend.graphs
    assert graph.segments[-1].packed == 1 and not graph.segments[-1].failure


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.pad(x, (0, -len(x) % 8)).reshape(-1, 8).relu(),
        lambda x: torch.zeros(len(x) ** 2) + x.sum(),
        lambda x: torch.ones(len(x) // 2).exp(),
    ],
    ids=["remainder", "square", "half"],
)
def test_sizes_that_python_computes(backend: Backend, function: Callable[..., Any]) -> None:
    """What no tensor of a segment tells is one of its arguments."""
    compiled = torch.compile(function, backend=backend, dynamic=True)
    for size in (9, 16, 70):
        agrees(backend, function, torch.randn(size), compiled=compiled)
    assert not any(segment.failure for graph in backend.graphs for segment in graph.segments)


def test_a_difference_of_sizes_is_a_size(backend: Backend) -> None:
    """Torch knows from its guards that it is not below 0."""

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(x[len(y) :]).relu() + x.sum() + y.sum()

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for size in (9, 70):
        agrees(backend, function, torch.rand(size) + 2, torch.rand(4), compiled=compiled)
    assert not any(segment.failure for graph in backend.graphs for segment in graph.segments)


def test_attention_takes_what_torch_does(backend: Backend) -> None:
    """Arguments by name; keys whose heads are repeated; queries that are the same for a batch."""

    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        attention = F.scaled_dot_product_attention
        few = {"key": k[:, :2], "value": v[:, :2], "scale": 0.3, "enable_gqa": True}
        return attention(query=q, **few), attention(q[:1], k, v)

    agrees(backend, function, *(torch.randn(2, 4, 3, 4) for _ in range(3)))
    [graph] = backend.graphs
    assert len(graph.segments) == 1 and not graph.eager


def test_interpolation_takes_its_input_by_name(backend: Backend) -> None:
    agrees(backend, lambda x: F.interpolate(input=x, scale_factor=2), torch.randn(1, 2, 3, 4))
    assert not backend.graphs[0].eager


@pytest.mark.parametrize("corners", [False, True])
def test_images_of_any_size_are_resized_by_a_factor(backend: Backend, corners: bool) -> None:
    model = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=corners)
    compiled = torch.compile(model, backend=backend, dynamic=True)
    for height, width in ((5, 7), (8, 4)):
        agrees(backend, model, torch.randn(1, 2, height, width), compiled=compiled)
    [graph] = backend.graphs
    assert not graph.eager


def test_corners_stay_where_torch_has_them_at_any_size(backend: Backend) -> None:
    """A factor that may leave a part of an element over is left to torch."""
    model = nn.Upsample(scale_factor=1.5, mode="bilinear", align_corners=True)
    compiled = torch.compile(model, backend=backend, dynamic=True)
    for height in (5, 8):
        agrees(backend, model, torch.randn(1, 2, height, 5), compiled=compiled)


def test_numbers_that_change(backend: Backend) -> None:
    """A number is an operand, whatever its sign; it is no size."""
    compiled = torch.compile(lambda x, n: x * n + n, backend=backend, dynamic=True)
    for n in (3, -7):
        x = torch.randn(4)
        torch.testing.assert_close(compiled(x, n), x * n + n)
    assert not backend.graphs[-1].eager


def test_gradients_are_left_to_torch(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    model = nn.Linear(3, 2)
    compiled = torch.compile(model, backend=backend)
    with caplog.at_level(logging.WARNING):
        compiled(torch.randn(4, 3)).sum().backward()
    assert model.weight.grad is not None and not backend.graphs
    assert "run by torch" in caplog.text and "torch.no_grad()" in caplog.text


def test_parameters_are_packed_again_after_a_step(backend: Backend) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    compiled = torch.compile(model, backend=backend)
    x = torch.randn(3, 4)
    agrees(backend, model, x, compiled=compiled)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model(x).square().sum().backward()
    optimizer.step()
    agrees(backend, model, x, compiled=compiled)
    model[0].weight.data = torch.randn(8, 4)  # other memory, the same version
    agrees(backend, model, x, compiled=compiled)
    agrees(backend, model, x, compiled=compiled)
    [segment] = [segment for graph in backend.graphs for segment in graph.segments]
    assert segment.packed == 3 and segment.compiled == 1


def test_parameters_whose_address_comes_back_are_packed_again(backend: Backend) -> None:
    """As after two changes of ``p.data`` between calls; the version stays the same, too."""
    model, memory = nn.Linear(4, 3).eval(), np.ones((3, 4), np.float32)
    compiled, x = torch.compile(model, backend=backend), torch.randn(2, 4)
    for value in (1.0, 2.0):
        memory[:] = value
        model.weight.data = torch.from_numpy(memory)
        agrees(backend, model, x, compiled=compiled)


def test_threads_wait_while_one_compiles(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, x = torch.compile(lambda x: x.exp() + 1, backend=backend), torch.randn(3)
    results: list[torch.Tensor] = []
    others: list[Thread] = []

    def interrupted(*args: Any, **named: Any) -> Any:
        if not others:
            others.append(Thread(target=lambda: results.append(compiled(x))))
            others[0].start()
            others[0].join(0.2)
        return compile_programs(*args, **named)

    monkeypatch.setattr("ansorpy.torch_backend.segment.compile_programs", interrupted)
    results.append(compiled(x))
    others[0].join()
    for result in results:
        torch.testing.assert_close(result, x.exp() + 1)
    assert len(results) == 2 and backend.graphs[0].segments[0].compiled == 1


def test_constants_computed_from_parameters_are_packed_again(backend: Backend) -> None:
    """The norm becomes part of the convolution's weights; the queries' products are one."""
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(2))
    model = nn.Sequential(layers, nn.TransformerEncoderLayer(16, 2, 20, batch_first=True)).eval()
    compiled, x = torch.compile(model, backend=backend), torch.randn(2, 3, 6, 6)
    agrees(backend, model, x, compiled=compiled)
    with torch.no_grad():
        for value in (*model.parameters(), layers[1].running_var, layers[1].running_mean):
            value.add_(torch.rand_like(value) / 4)
    agrees(backend, model, x, compiled=compiled)
    assert {(s.packed, s.compiled) for s in backend.graphs[0].segments} == {(2, 1)}


def test_a_parameter_of_one_element_is_part_of_the_code(backend: Backend) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)).eval()
    compiled, x = torch.compile(model, backend=backend), torch.randn(2, 3)
    for _ in range(2):
        agrees(backend, model, x, compiled=compiled)
        with torch.no_grad():
            model[1].bias.add_(1)
    [segment] = backend.graphs[0].segments
    assert segment.packed == segment.compiled == 2


def test_changed_parameters_start_no_search(tmp_path: Path) -> None:
    torch._dynamo.reset()
    backend = Backend(db=tmp_path / "t.db", threads=1, trials=4)
    model = nn.Linear(5, 3).eval()
    compiled, counts = torch.compile(model, backend=backend), []
    for factor in (1.0, 2.0):
        with torch.no_grad():
            model.weight.mul_(factor)
        agrees(backend, model, torch.randn(2, 5), compiled=compiled)
        with Database(tmp_path / "t.db") as database:
            counts.append(sum(database.trials(row.key) for row in database.tasks()))
    assert backend.graphs[0].segments[0].packed == 2
    assert counts[0] == counts[1] > 0


def test_buffers_change_in_training_only(backend: Backend) -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    reference = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    reference.load_state_dict(model.state_dict())
    compiled = torch.compile(model, backend=backend)
    for train in (True, True, False):
        model.train(train), reference.train(train)
        x = torch.randn(3, 2, 6, 6)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), reference(x), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(model[1].running_var, reference[1].running_var)
    assert all(segment.packed == 1 for segment in backend.graphs[0].segments)


def test_operators_that_torch_runs_are_listed(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.lgamma((x @ x.T).exp()).relu() * 2

    with caplog.at_level(logging.WARNING):
        agrees(backend, function, torch.randn(3, 4) / 9)
    [graph] = backend.graphs
    assert [*graph.eager] == ["lgamma.default"] and len(graph.segments) == 2
    assert caplog.text.count("lgamma.default (no translation)") == 1


def test_random_numbers_are_those_of_torch(backend: Backend) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.rand_like(x) + F.dropout(x, 0.5, training=False)

    compiled = torch.compile(function, backend=backend)
    x = torch.randn(4, 4)
    torch.manual_seed(3)
    got = compiled(x)
    torch.manual_seed(3)
    torch.testing.assert_close(got, function(x))


def test_no_copies_of_results_and_inference_mode(backend: Backend) -> None:
    model = nn.Linear(4, 4).eval()
    compiled = torch.compile(model, backend=backend)
    x = torch.randn(2, 4)
    with torch.inference_mode():
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    [segment] = backend.graphs[0].segments
    assert segment.packed == 1
