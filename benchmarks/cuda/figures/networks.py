"""Whole networks beside torch, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any, Literal

import ansorpy as ap
from benchmarks.cuda.figures.base import TOLERANCES, Figures, FigureSettings, compare
from benchmarks.cuda.nets import NETWORKS, as_onnx
from benchmarks.cuda.timing import Seconds, by_clock, fastest, in_turns

__all__ = ["Peer", "measure_network"]

Peer = Literal["eager", "compile"]
_TRIALS = 400


def measure_network(
    name: str,
    batch: int,
    dtype: str,
    peer: Peer,
    torch: Any,
    settings: FigureSettings,
    limit_s: float,
) -> Figures:
    """The network *name* from call to result, input and output on the GPU.

    Steps of the same network share our compiled model within a process.
    """
    make, example = NETWORKS[name]
    torch.manual_seed(settings.seed)
    with torch.device("cpu"):
        module, given = make(torch).eval(), example(torch, batch)
    if dtype == "float16":
        module, given = module.half(), given.half() if given.is_floating_point() else given
    model = _compiled(f"{name}.{batch}.{dtype}", torch, module, given, settings, limit_s)
    module, given = module.cuda(), given.cuda()
    want = module(given)
    out = torch.empty_like(want)
    run = model.prepare({"x": given}, [out])
    run()
    compare(out, want, TOLERANCES[dtype])
    peers = _eager if peer == "eager" else partial(_with_compiler, settings.compile_mode)
    engines = peers(torch, module, given)
    called = "eager" if peer == "eager" else f"compile, {settings.compile_mode}"
    figures = in_turns(by_clock(run, lambda: None), fastest(engines))
    return Figures(*figures, f"batch {batch}", dtype, "float32", called)


def _compiled(
    key: str, torch: Any, module: Any, given: Any, settings: FigureSettings, limit_s: float
) -> Any:
    """Our model of *module*, which is on the CPU; compiled once in a process."""
    if key not in settings.models:
        with torch.device("cpu"):  # the exporter folds constants, which it makes on the CPU
            proto = as_onnx(torch, module, given)
        settings.models[key] = ap.compile(
            proto, target="cuda", trials=_TRIALS, time_limit=limit_s, db=settings.db,
            seed=settings.seed,
        )  # fmt: skip
    return settings.models[key]


def _eager(torch: Any, module: Any, given: Any) -> list[Seconds]:
    """The module as it is, and with images channels last."""
    engines = [_timed(torch, module, given)]
    if given.ndim == 4:
        engines.append(_timed(torch, *_channels_last(torch, module, given)))
    return engines


def _with_compiler(mode: str, torch: Any, module: Any, given: Any) -> list[Seconds]:
    """The module compiled by torch in *mode*; images are channels last in float16 only.

    Compiling takes a minute or so, so that not both layouts are tried.
    """
    if given.ndim == 4 and given.dtype is torch.float16:
        module, given = _channels_last(torch, module, given)
    compiled = torch.compile(module, mode=mode)
    for _ in range(3):  # compiles, and captures its graphs
        compiled(given)
    return [_timed(torch, compiled, given)]


def _channels_last(torch: Any, module: Any, given: Any) -> tuple[Any, Any]:
    form = torch.channels_last
    copied = deepcopy(module)  # since a module's layout changes in place
    return copied.to(memory_format=form), given.to(memory_format=form)


def _timed(torch: Any, module: Callable[[Any], Any], given: Any) -> Seconds:
    return by_clock(partial(module, given), torch.cuda.synchronize)
