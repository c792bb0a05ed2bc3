"""Splits of datasets into what a model learns and what it is evaluated on."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from ansorpy.cost.split_kinds import Split
from ansorpy.errors import UsageError
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.program_dataset import MeasuredTask, ProgramDataset

__all__ = ["split"]


def split(
    dataset: ProgramDataset, how: Split, share: float = 0.2, seed: int = 0
) -> tuple[ProgramDataset, ProgramDataset]:
    """Divide *dataset* in two: what to learn from, and about *share* of it to evaluate on.

    Source: TenSet (NeurIPS 2021 D&B), which has the same three.

    Raises:
        UsageError: It is by target, and there is only one.
    """
    rng = np.random.default_rng(seed)
    if how is Split.WITHIN_TASK:
        return _within(dataset, share, rng)
    if how is Split.BY_TASK:
        groups = _grouped(dataset, lambda each: structural_hash(each.task.dag))
        count = max(1, round(share * len(groups)))
        chosen = {list(groups)[n] for n in rng.permutation(len(groups))[:count]}
    else:
        groups = _grouped(dataset, lambda each: (each.task.target.key, each.task.threads))
        if len(groups) < 2:
            raise UsageError(
                "all programs are for one target and number of threads",
                hint="name datasets of several, or split by_task",
            )
        chosen = {min(groups, key=lambda key: sum(map(len, groups[key])))}
    parts = ProgramDataset(), ProgramDataset()
    for key, members in groups.items():
        for each in members:
            parts[key in chosen].add(each)
    return parts


def _grouped(
    dataset: ProgramDataset, key: Callable[[MeasuredTask], Hashable]
) -> dict[Hashable, list[MeasuredTask]]:
    groups: dict[Hashable, list[MeasuredTask]] = {}
    for each in dataset.tasks.values():
        groups.setdefault(key(each), []).append(each)
    return groups


def _within(
    dataset: ProgramDataset, share: float, rng: np.random.Generator
) -> tuple[ProgramDataset, ProgramDataset]:
    parts = ProgramDataset(), ProgramDataset()
    for each in dataset.tasks.values():
        held = np.zeros(len(each), dtype=np.bool_)
        held[rng.permutation(len(each))[: round(share * len(each))]] = True
        for part, mask in zip(parts, (~held, held), strict=True):
            if mask.any():
                part.add(each.only(mask))
    return parts
