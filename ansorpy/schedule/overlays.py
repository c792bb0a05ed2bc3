"""Stages whose results lie where those of another one were, in the shared memory of a GPU block.

::

    alloc s in shared                          alloc s in shared
      for i, j: s[i, j] = ...                    for i, j: s[i, j] = ...
      for i, j: top[i] max= s[i, j]      -->     for i, j: top[i] max= s[i, j]
      alloc e in shared                          barrier(shared)
        for i, j: e[i, j] = exp(s[i, j])         for i, j: s[i, j] = exp(s[i, j])

Each element is read last by the thread that writes it anew, so that one buffer does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansorpy.schedule.bounds import BLOCK_THREADS
from ansorpy.schedule.inlining import effective
from ansorpy.schedule.stage import Stage

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["overlays"]


def overlays(state: State) -> dict[str, str]:
    """Stage -> the stage whose memory it takes over; each gives its own to one at most."""
    found: dict[str, str] = {}
    for stage in state.stages:
        if _is_of_block(stage):
            given = [s for s in _read_alike(state, stage) if s.name not in found.values()]
            found.update((stage.name, source.name) for source in given[:1])
    return found


def _is_of_block(stage: Stage) -> bool:
    """True for what all threads of a block make together, and nothing is copied to."""
    together = any(it.annotation in BLOCK_THREADS for it in stage.iters)
    return stage.attach is not None and stage.scope is None and together


def _read_alike(state: State, stage: Stage) -> list[Stage]:
    """The stages that *stage* reads element by element, as the last one to read them."""
    definition, op = effective(state), stage.compute
    if op.reduce_axes:
        return []
    place = {s.name: n for n, s in enumerate(state.stages)}
    found = []
    for read in definition.reads[stage.name]:
        source = state.stage(read.tensor.name)
        alike = source.attach == stage.attach and _is_of_block(source)
        alike = alike and (source.op.shape, source.op.dtype) == (op.shape, op.dtype)
        others = [state.stage(name) for name in definition.readers[source.name]]
        alike = alike and all(s.attach == stage.attach for s in others)
        last = all(place[s.name] <= place[stage.name] for s in others)
        if alike and last and all(indices == op.axes for indices in read.indices):
            found.append(source)
    return found
