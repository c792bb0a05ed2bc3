"""Levels of tiles, one letter per level as in ``"SSRSRS"``; shared by several rules."""

from __future__ import annotations

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import AxisKind
from ansorpy.schedule.stage import Iter, SplitRelation, Stage, Tail
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.storage import RfactorStep

__all__ = [
    "factored_axes", "follow_tile", "last_of_outermost_reduce_tile", "multi_level_tile",
    "reduce_in_one", "space_splits",
]  # fmt: skip

LETTER = {AxisKind.SPACE: "S", AxisKind.REDUCE: "R"}


def multi_level_tile(
    state: State, name: str, tile_levels: str, max_innermost: int, *, ragged: bool = False,
    cover: bool = False,
) -> State:  # fmt: skip
    """Split every loop of stage *name* once per letter of its kind, and reorder by *tile_levels*.

    With *ragged*, tiles of space axes need not divide: the last tile is shifted to fit.  With
    *cover*, no tiles need to divide, and elements outside are skipped, because GPU threads must not
    overlap.  Axes in the attribute ``no_split_at_inner`` stay whole, in front of the innermost
    level.  Axes factored out of a reduction have tiles of one, because each part reads its own
    operands.

    Raises:
        ScheduleError: The stage has loops of a kind that *tile_levels* has no letter for.
    """
    stage = state.stage(name)
    whole, factored = stage.compute.attrs.no_split_at_inner, factored_axes(state, stage)
    levels: dict[AxisKind, list[list[Iter]]] = {
        kind: [[] for _ in range(tile_levels.count(letter))] for kind, letter in LETTER.items()
    }
    kept: dict[AxisKind, list[Iter]] = {AxisKind.SPACE: [], AxisKind.REDUCE: []}
    for it in stage.iters:
        parts = levels[it.kind]
        if not parts:
            raise ScheduleError(
                f'"{tile_levels}" has no tile level for a {it.kind.value} loop',
                stage=name, program=state.text(name, {it.name}),
                hint=f'add the letter "{LETTER[it.kind]}" where its tiles should run',
            )  # fmt: skip
        if it.name in whole:
            kept[it.kind].append(it)
        elif len(parts) == 1:
            parts[0].append(it)
        else:
            factors = (1 if it.name in factored else None,) * (len(parts) - 1)
            shifted = ragged and it.kind is AxisKind.SPACE
            tail: Tail = "cover" if cover else "shift" if shifted else "guard"
            state, tiles = state.split(name, it, factors, max_innermost=max_innermost, tail=tail)
            for part, tile in zip(parts, tiles, strict=True):
                part.append(tile)
    for kind, parts in levels.items():
        if kept[kind]:
            parts[-1][:0] = kept[kind]
    return state.reorder(name, _in_order(tile_levels, levels))


def factored_axes(state: State, stage: Stage) -> frozenset[str]:
    """The axes of *stage* that come from an rfactor: factored out, or reducing over the parts."""
    made = {step.iter for step in state.history if isinstance(step, RfactorStep)}
    names = {axis.name for axis in stage.compute.axes}
    parts = {name for name in made if f"{name}.v" in stage.root_extents}
    return frozenset(made & names | {f"{name}.v" for name in parts})


def _in_order(tile_levels: str, levels: dict[AxisKind, list[list[Iter]]]) -> list[Iter]:
    queues = {LETTER[kind]: iter(parts) for kind, parts in levels.items()}
    return [it for letter in tile_levels for it in next(queues[letter])]


def follow_tile(state: State, name: str, source: str, n_split: int) -> State:
    """Tile stage *name* with the factors of *source*, its producer of the same shape.

    The first ``n_split - 1`` inner factors are kept and the others are multiplied together, which
    gives ``n_split + 1`` space levels.
    """
    stage, producer = state.stage(name), state.stage(source)
    split = {r.parent for r in producer.relations if isinstance(r, SplitRelation)}
    levels: list[list[Iter]] = [[] for _ in range(n_split + 1)]
    whole: list[Iter] = []
    for it, axis in zip(stage.iters, producer.compute.axes, strict=True):
        if axis.name not in split:
            whole.append(it)
            continue
        state, tiles = state.follow_split(name, it, (source, axis.name), n_split)
        for level, tile in zip(levels, tiles, strict=True):
            level.append(tile)
    levels[-1][:0] = whole
    return state.reorder(name, [it for level in levels for it in level])


def space_splits(stage: Stage) -> tuple[SplitRelation, ...]:
    """The splits of the stage's own space axes, in axis order."""
    by_parent = {r.parent: r for r in stage.relations if isinstance(r, SplitRelation)}
    return tuple(by_parent[a.name] for a in stage.compute.axes if a.name in by_parent)


def reduce_in_one(state: State, name: str) -> tuple[State, Iter]:
    """Fuse all reduce loops of stage *name*, which has at least one."""
    return state.fuse(name, state.stage(name).reduce_iters)


def last_of_outermost_reduce_tile(stage: Stage) -> Iter:
    """The loop of *stage* at which tiles of its operands are copied.

    This is the last loop that steps through the reduction from one tile to the next.
    """
    whole = stage.compute.attrs.no_split_at_inner
    split = [axis for axis in stage.compute.reduce_axes if axis.name not in whole]
    return stage.reduce_iters[max(len(split), 1) - 1]
