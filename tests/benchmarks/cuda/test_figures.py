"""Every kind of figure on this machine's CPU: programs for it, and torch without a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ansorpy as ap
from ansorpy.errors import VerificationFailed
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret import run_dag
from ansorpy.measure.run.inputs import input_array
from benchmarks.cuda import nets, timing
from benchmarks.cuda.figures import attention, networks, operators, products, search
from benchmarks.cuda.figures.base import Figures, FigureSettings, compare
from benchmarks.cuda.figures.half import in_half
from benchmarks.cuda.nets import bert, resnet
from benchmarks.ops.families.conv2d import Conv2d
from benchmarks.ops.families.conv_layer import ConvLayer
from benchmarks.ops.families.elementwise import Softmax


class FakeEvent:
    """A moment of the host's clock."""

    at = 0.0

    def record(self) -> None:
        self.at = perf_counter()

    def synchronize(self) -> None:
        """Nothing runs apart from the host."""

    def elapsed_time(self, other: FakeEvent) -> float:
        return (other.at - self.at) * 1e3


class OnHost:
    """A kernel or model for this machine that takes torch's tensors."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def bind(self, **constants: Any) -> None:
        self.made.bind(**constants)

    def prepare(self, *given: Any, out: Any = None) -> Callable[[], None]:
        if out is not None:
            run = self.made.prepare(*map(as_numpy, given), out=as_numpy(out))
        else:
            feeds, outputs = given
            run = self.made.prepare(
                {name: as_numpy(t) for name, t in feeds.items()}, list(map(as_numpy, outputs))
            )

        def seconds(number: int) -> float:
            begin = perf_counter()
            for _ in range(number):
                run()
            return perf_counter() - begin

        run_it = partial(run)
        run_it.seconds = seconds  # type: ignore[attr-defined]
        return run_it


def as_numpy(tensor: Any) -> Any:
    if str(tensor.dtype) == "torch.bfloat16":
        return tensor.view(sys.modules["torch"].int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch, whose GPU is the host, and our programs for the host."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(timing, "ROUNDS", 2)
    monkeypatch.setattr(timing, "BURST_S", 1e-4)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda self: self)
    monkeypatch.setattr(torch.nn.Module, "cuda", lambda self: self)
    cuda: dict[str, Any] = {
        "Event": lambda enable_timing: FakeEvent(), "synchronize": lambda: None,
        "current_stream": lambda: "here", "set_stream": lambda stream: None, "Stream": no_graph,
    }  # fmt: skip
    for name, made in cuda.items():
        monkeypatch.setattr(torch.cuda, name, made)
    monkeypatch.setattr(torch, "compile", lambda module, mode: module)

    def tune(tensors: Any, *, target: str, **rest: Any) -> OnHost:
        assert target == "cuda"
        return OnHost(ap.tune(tensors, threads=1, **rest | {"trials": 2}))

    def compiled(proto: Any, *, target: str, db: Path, seed: int, **rest: Any) -> OnHost:
        assert target == "cuda" and rest["trials"] and rest["time_limit"]
        return OnHost(ap.compile(proto, effort="none", db=db, seed=seed))

    fake = SimpleNamespace(tune=tune, compile=compiled)
    monkeypatch.setattr("benchmarks.cuda.figures.base.ap", fake)
    monkeypatch.setattr(networks, "ap", fake)
    with torch.no_grad():
        yield torch


def no_graph() -> None:
    raise RuntimeError("no stream\nat all")


def settings(folder: Path) -> FigureSettings:
    return FigureSettings(folder / "cuda.db", trials=2)


def assert_figures(found: Figures, dtype: str, sums: str = "float32") -> None:
    assert found.ours_s > 0 and found.peer_s > 0 and found.peer
    assert (found.dtype, found.sums) == (dtype, sums)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_products(dtype: str, torch: Any, tmp_path: Path) -> None:
    found = products.measure_product(dtype, 37, torch, settings(tmp_path), 20.0)
    assert_figures(found, dtype, "int32" if dtype == "int8" else "float32")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    "case", [ConvLayer("ConvLayer", (7, 5), 3, 5, 3, 2, 1), Softmax("SOFTMAX", (3, 1, 17))]
)
def test_operators(dtype: str, case: Any, torch: Any, tmp_path: Path) -> None:
    found = operators.measure_case(dtype, case, torch, settings(tmp_path), 20.0)
    assert_figures(found, dtype)
    assert found.note == "no graph of a call of torch: no stream"
    assert torch.get_default_dtype() is torch.float32


def test_attention_agrees_with_torchs(torch: Any, tmp_path: Path) -> None:
    found = attention.measure_attention(13, 8, torch, settings(tmp_path), 20.0, 3)
    assert_figures(found, "float16")
    assert found.note == "3 heads, 13 long, 8 wide"


@pytest.mark.parametrize(
    ("name", "dtype"), [("resnet", "float32"), ("resnet", "float16"), ("bert", "float32")]
)
def test_networks_are_compiled_once(
    name: str, dtype: str, torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small: dict[str, tuple[Any, Any]] = {
        "resnet": (
            lambda torch: resnet(torch, layers=(1, 1), width=4),
            lambda torch, batch: torch.randn(batch, 3, 17, 19),
        ),
        "bert": (
            lambda torch: bert(torch, layers=1, width=16, heads=2, words=50),
            lambda torch, batch: torch.randint(0, 50, (batch, 7)),
        ),
    }  # fmt: skip
    monkeypatch.setattr(networks, "NETWORKS", small)
    shared = settings(tmp_path)
    for peer in ("eager", "compile"):
        found = networks.measure_network(name, 2, dtype, peer, torch, shared, 20.0)
        assert_figures(found, dtype)
        assert found.peer == ("eager" if peer == "eager" else "compile, reduce-overhead")
    assert len(shared.models) == 1


def test_each_layout_has_weights_of_its_own(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[tuple[bool, bool]] = set()

    class Convolution(torch.nn.Conv2d):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            form = torch.channels_last
            tensors = (x, self.weight)
            seen.add(tuple(t.is_contiguous(memory_format=form) for t in tensors))
            return super().forward(x)

    made = (
        lambda torch: Convolution(3, 4, 3),
        lambda torch, batch: torch.randn(batch, 3, 9, 7),
    )
    monkeypatch.setattr(networks, "NETWORKS", {"one": made})
    networks.measure_network("one", 2, "float32", "eager", torch, settings(tmp_path), 20.0)
    assert seen == {(False, False), (True, True)}


def test_a_search_counts_its_candidates(torch: Any, tmp_path: Path) -> None:
    case = Conv2d("C2D", (5, 7), 3, 4, 3, 1, 1)
    found = search.measure_search(case, torch, settings(tmp_path), 30.0)
    assert found.rate == 4.0 and found.note.startswith("2 candidates in 30 s")


def test_what_differs_from_torch_is_no_figure(torch: Any) -> None:
    compare(torch.ones(3), torch.ones(3, 1), 0.0)
    with pytest.raises(VerificationFailed, match="differs from torch by 0.5 of the largest"):
        compare(torch.tensor([2.0, 1.0]), torch.tensor([2.0, 2.0]), 0.1)


def test_the_networks_have_inputs_of_any_batch() -> None:
    made = SimpleNamespace(
        randn=lambda *shape: shape, randint=lambda low, high, shape: (low, high, shape)
    )
    assert nets.NETWORKS["resnet50"][1](made, 3) == (3, 3, 224, 224)
    assert nets.NETWORKS["bert_base"][1](made, 2)[2] == (2, 128)


@pytest.mark.parametrize(
    "case",
    [
        Conv2d("C2D", (5, 7), 3, 4, 3, 2, 1), Conv2d("C2D", (3, 1), 2, 3, 1),
        ConvLayer("ConvLayer", (5, 3), 3, 1, 3, 1, 1), Softmax("SOFTMAX", (2, 11)),
    ],
)  # fmt: skip
def test_a_definition_in_half_computes_in_float32(case: Any) -> None:
    full, half = case.dag, ComputeDAG.of(in_half(case.tensors()))
    assert {op.dtype.value for op in (*half.args, *half.outputs)} == {"float16"}
    assert [op.name for op in half.args] == [op.name for op in full.args]
    assert [op.constant for op in half.args] == [op.constant for op in full.args]
    given = {op.name: input_array(op, 0) for op in half.args}
    [got] = run_dag(half, given)
    [want] = run_dag(full, {name: array.astype(np.float32) for name, array in given.items()})
    np.testing.assert_allclose(got, want.astype(np.float16), rtol=1e-3, atol=1e-6)
