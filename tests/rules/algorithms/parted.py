"""Attention in blocks of keys, for the tests of the rules that schedule it."""

from __future__ import annotations

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.algorithms.key_blocks import key_blocks
from ansorpy.rules.algorithms.softmax import find_weighted_sums

__all__ = ["parted"]


def parted(tensors: list[Tensor], length: int, *, tiled: bool = False) -> ComputeDAG:
    """*tensors*, which are attention, with keys in blocks of *length*."""
    dag = ComputeDAG.of(tensors)
    [weighted] = find_weighted_sums(dag)
    return key_blocks(dag, weighted, length, tiled=tiled).dag
