"""Stages that reuse the shared memory of another stage in the same GPU block.

::

    alloc s in shared                          alloc s in shared
      for i, j: s[i, j] = ...                    for i, j: s[i, j] = ...
      for i, j: top[i] max= s[i, j]      -->     for i, j: top[i] max= s[i, j]
      alloc e in shared                          barrier(shared)
        for i, j: e[i, j] = exp(s[i, j])         for i, j: s[i, j] = exp(s[i, j])

The last thread to read an element is the one that overwrites it, so one buffer suffices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansorpy.ir.loops import BLOCK_THREADS
from ansorpy.schedule.stage import Stage

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["overlays"]


def overlays(state: State) -> dict[str, str]:
    """Stage -> the stage whose memory it reuses; no two stages reuse the same memory."""
    found: dict[str, str] = {}
    for stage in state.stages:
        if _is_of_block(stage):
            given = [s for s in _read_alike(state, stage) if s.name not in found.values()]
            found.update((stage.name, source.name) for source in given[:1])
    return found


def _is_of_block(stage: Stage) -> bool:
    """Whether all threads of a block compute the stage together, and it has no scope set."""
    together = any(it.annotation in BLOCK_THREADS for it in stage.iters)
    return stage.attach is not None and stage.scope is None and together


def _read_alike(state: State, stage: Stage) -> list[Stage]:
    """The stages that *stage* reads element by element and is the last to read."""
    inlined, op = state.inlined_dag, stage.compute
    if op.reduce_axes:
        return []
    place = {s.name: n for n, s in enumerate(state.stages)}
    found = []
    for read in inlined.reads[stage.name]:
        source = state.stage(read.tensor.name)
        alike = source.attach == stage.attach and _is_of_block(source)
        alike = alike and (source.op.shape, source.op.dtype) == (op.shape, op.dtype)
        others = [state.stage(name) for name in inlined.readers[source.name]]
        alike = alike and all(s.attach == stage.attach for s in others)
        last = all(place[s.name] <= place[stage.name] for s in others)
        if alike and last and all(indices == op.axes for indices in read.indices):
            found.append(source)
    return found
