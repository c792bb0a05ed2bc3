"""The measured steps: each tunes a case, checks it against torch, and times both, alternating."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ansorpy as ap
from ansorpy.errors import MissingDependency, VerificationFailed
from benchmarks.cuda.nets import NETWORKS, as_onnx
from benchmarks.cuda.timing import Seconds, as_graph, by_clock, by_events, fastest, in_turns
from benchmarks.ops.case import Case
from benchmarks.ops.suite import cases

__all__ = ["Figures", "Settings", "Step", "cuda_torch", "steps"]

_SIDE = 4096
_NETWORK_TRIALS = 400


@dataclass(frozen=True)
class Settings:
    """Settings shared by all steps: the file of trials, and the number of trials per case."""

    db: Path
    trials: int = 32
    seed: int = 0


@dataclass(frozen=True)
class Figures:
    """Seconds of our call and of torch's, and a note on them."""

    ours_s: float
    peer_s: float
    note: str = ""


@dataclass(frozen=True)
class Step:
    """One thing to measure, and the ratio (torch's time over ours) that it should reach.

    ``limit_s`` is the maximum time of its search; ``beside_s`` is the time of everything else.
    """

    name: str
    wanted: float
    limit_s: float
    measure: Callable[[Any, Settings, float], Figures]
    beside_s: float = 4.0


def steps(only: Sequence[str] = ()) -> list[Step]:
    """Matmuls, then networks, then the suite at batch 1; those that match *only*, if given."""
    found = [
        Step(f"matmul.float32.{_SIDE}", 0.85, 90.0, partial(_matmul, "float32")),
        Step(f"matmul.float16.{_SIDE}", 0.60, 90.0, partial(_matmul, "float16")),
        *(Step(f"network.{name}", 1.0, 200.0, partial(_network, name), 20) for name in NETWORKS),
        *(Step(f"ops.{case.name}", 1.0, 12.0, partial(_case, case)) for case in _suite()),
    ]
    return [s for s in found if not only or any(fnmatch(s.name, pattern) for pattern in only)]


def cuda_torch() -> Any:
    """Import torch for a GPU, in float32 without TF32.

    Raises:
        MissingDependency: torch is not installed, or finds no GPU.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingDependency(
            f"the peer is torch, which is not installed ({error})", hint="pip install torch"
        ) from error
    if not torch.cuda.is_available():
        raise MissingDependency("torch sees no GPU", hint="install the torch that fits the driver")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_default_device("cuda")
    torch.set_grad_enabled(False)
    return torch


def _suite() -> list[Case]:
    return [case for case in cases() if not case.label.endswith(".b16")]


def _matmul(dtype: str, torch: Any, settings: Settings, limit_s: float) -> Figures:
    a = ap.placeholder((_SIDE, _SIDE), dtype, name="A")
    b = ap.placeholder((_SIDE, _SIDE), dtype, name="B")
    k = ap.reduce_axis(_SIDE, name="k")

    def product(i: Any, j: Any) -> Any:
        x, y = a[i, k], b[k, j]
        if dtype != "float32":
            x, y = x.astype("float32"), y.astype("float32")
        return ap.sum(x * y, axis=k)

    c = ap.compute((_SIDE, _SIDE), product, name="C")
    kernel = _tuned([a, b, c], settings, limit_s, trials=4 * settings.trials)
    x, y = (torch.randn(_SIDE, _SIDE).to(getattr(torch, dtype)) for _ in range(2))
    out = torch.empty(_SIDE, _SIDE)
    run = kernel.prepare(x, y, out=out)
    run()
    _compare(out, torch.matmul(x, y), 2e-3 if dtype == "float32" else 5e-3)
    return Figures(*in_turns(run.seconds, by_events(torch, lambda: torch.matmul(x, y))))


def _case(case: Case, torch: Any, settings: Settings, limit_s: float) -> Figures:
    kernel = _tuned(case.tensors(), settings, limit_s, trials=settings.trials)
    values = case.values(settings.seed)
    kernel.bind(**{op.name: values[op.name] for op in case.dag.args if op.constant})
    inputs = [torch.from_numpy(values[op.name]).cuda() for op in case.dag.args if not op.constant]
    op = case.dag.outputs[0]
    out = torch.empty(op.shape, dtype=getattr(torch, op.dtype.value))
    run = kernel.prepare(*inputs, out=out)
    run()
    peers, note = _peers(case, torch, settings, out)
    return Figures(*in_turns(run.seconds, fastest(peers)), note)


def _peers(case: Case, torch: Any, settings: Settings, out: Any) -> tuple[list[Seconds], str]:
    """torch's ways to compute *case*, which agree with *out*, and a note on them."""
    given = {
        name: torch.from_numpy(a).cuda() for name, a in case.peer_values(settings.seed).items()
    }
    peers: list[Seconds] = []
    note = ""
    for call in case.torch_calls(torch, given):
        want = case.from_peer(call().contiguous().cpu().numpy())
        _compare(out, torch.from_numpy(np.ascontiguousarray(want)).cuda(), 2e-3)
        peers.append(by_events(torch, call))
        try:
            peers.append(as_graph(torch, call))
        except RuntimeError as error:  # some calls wait for the GPU, which a graph cannot hold
            note = f"no graph of a call of torch: {error}".splitlines()[0]
    return peers, note


def _network(name: str, torch: Any, settings: Settings, limit_s: float) -> Figures:
    make, example = NETWORKS[name]
    torch.manual_seed(settings.seed)
    with torch.device("cpu"):
        module, given = make(torch).eval(), example(torch)
        proto = as_onnx(torch, module, given)
    model = ap.compile(
        proto, target="cuda", trials=_NETWORK_TRIALS, time_limit=limit_s, db=settings.db,
        seed=settings.seed,
    )  # fmt: skip
    module, given = module.cuda(), given.cuda()
    want = module(given)
    out = torch.empty_like(want)
    run = model.prepare({"x": given}, [out])
    run()
    _compare(out, want, 1e-3)
    eager = by_clock(partial(module, given), torch.cuda.synchronize)
    return Figures(*in_turns(by_clock(run, lambda: None), eager))


def _tuned(tensors: Sequence[Any], settings: Settings, limit_s: float, *, trials: int) -> Any:
    return ap.tune(
        tensors, target="cuda", trials=trials, time_limit=limit_s, db=settings.db,
        seed=settings.seed,
    )  # fmt: skip


def _compare(got: Any, want: Any, tolerance: float) -> None:
    """Raise unless the results agree within *tolerance* of the largest value."""
    scale = float(want.abs().max()) or 1.0
    error = float((got.double() - want.reshape(got.shape).double()).abs().max()) / scale
    if not error <= tolerance:
        raise VerificationFailed(f"differs from torch by {error:.2g} of the largest value")
