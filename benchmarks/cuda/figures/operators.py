"""Cases of the operator suite beside torch (cuDNN), in float32 and float16."""

from __future__ import annotations

from typing import Any

import numpy as np

from ansorpy.ir.dag import ComputeDAG
from benchmarks.cuda.figures.base import TOLERANCES, Figures, FigureSettings, compare, tuned
from benchmarks.cuda.figures.half import in_half
from benchmarks.cuda.timing import Seconds, as_graph, by_events, fastest, in_turns
from benchmarks.ops.case import Case

__all__ = ["measure_case"]


def measure_case(
    dtype: str, case: Case, torch: Any, settings: FigureSettings, limit_s: float
) -> Figures:
    """*case* with inputs and output of *dtype*, and the fastest of torch's ways to compute it."""
    tensors = in_half(case.tensors()) if dtype == "float16" else case.tensors()
    dag = ComputeDAG.of(tensors)
    kernel = tuned(tensors, settings, limit_s, trials=settings.trials)
    values = {
        op.name: case.values(settings.seed)[op.name].astype(op.dtype.numpy) for op in dag.args
    }
    kernel.bind(**{op.name: values[op.name] for op in dag.args if op.constant})
    inputs = [torch.from_numpy(values[op.name]).cuda() for op in dag.args if not op.constant]
    [op] = dag.outputs
    out = torch.empty(op.shape, dtype=getattr(torch, op.dtype.value))
    run = kernel.prepare(*inputs, out=out)
    run()
    peers, note = _peers(case, dtype, torch, settings, out)
    return Figures(*in_turns(run.seconds, fastest(peers)), note, dtype, "float32", "fastest")


def _peers(
    case: Case, dtype: str, torch: Any, settings: FigureSettings, out: Any
) -> tuple[list[Seconds], str]:
    """torch's ways to compute *case*, which agree with *out*, and a note on them."""
    given = {
        name: torch.from_numpy(a).cuda().to(getattr(torch, dtype))
        for name, a in case.peer_values(settings.seed).items()
    }
    peers: list[Seconds] = []
    note = ""
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))  # of the outputs that the calls allocate
    try:
        for call in case.torch_calls(torch, given):
            want = case.from_peer(call().float().contiguous().cpu().numpy())
            compare(out, torch.from_numpy(np.ascontiguousarray(want)).cuda(), TOLERANCES[dtype])
            peers.append(by_events(torch, call))
            try:
                peers.append(as_graph(torch, call))
            except RuntimeError as error:  # some calls wait for the GPU, which a graph cannot hold
                note = f"no graph of a call of torch: {error}".splitlines()[0]
    finally:
        torch.set_default_dtype(before)
    return peers, note
