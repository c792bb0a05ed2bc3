"""Asynchronous copies in flight; their destinations are undefined until the copies complete."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Ints, Masks
from ansorpy.ir.interpret.products import NOT_COMMITTED
from ansorpy.ir.loops import AsyncCopy, Buffer, For, ForKind, Stmt, walk_stmts

__all__ = ["Arrived", "Copies", "boxes_in"]


def boxes_in(stmt: Stmt) -> frozenset[Stmt]:
    """The copies in *stmt* that are parts of boxes."""
    boxes = [s for s in walk_stmts(stmt) if isinstance(s, For) and s.kind is ForKind.BULK]
    return frozenset(s.body for s in boxes if isinstance(s.body, AsyncCopy))


@dataclass(frozen=True)
class Arrived:
    """Elements *at* of *buffer*, each written by a copy that *thread* started in *statement*."""

    buffer: Buffer
    statement: Stmt
    at: Ints
    thread: Ints


@dataclass
class _Started:
    buffer: Buffer
    statement: Stmt
    at: Ints
    thread: Ints
    group: Ints


class Copies:
    """The asynchronous copies of one launch; each thread counts its own groups.

    Copies of *boxes* are visible to asynchronous instructions without a fence.
    """

    def __init__(self, threads: int, boxes: Collection[Stmt] = ()):
        self.boxes = boxes
        self.committed = np.zeros(threads, dtype=np.int64)
        self.started: list[_Started] = []

    def start(self, buffer: Buffer, statement: Stmt, at: Ints, thread: Ints) -> None:
        """Start a copy to each element of *at* by the thread at the same position in *thread*."""
        group = np.full(at.shape, NOT_COMMITTED, dtype=np.int64)
        self.started.append(_Started(buffer, statement, at, thread, group))

    def commit(self, threads: Ints) -> None:
        """Form the next group of each of *threads* from the copies since its last commit."""
        taking_part = self._mask(threads)
        for copy in self.started:
            mine = (copy.group == NOT_COMMITTED) & taking_part[copy.thread]
            copy.group[mine] = self.committed[copy.thread[mine]]
        self.committed[np.unique(threads)] += 1

    def wait(self, threads: Ints, pending: int) -> list[Arrived]:
        """Complete all but the last *pending* groups of *threads*; return the completed copies."""
        taking_part = self._mask(threads)
        arrived, left = [], []
        for copy in self.started:
            oldest = self.committed[copy.thread] - pending
            here = taking_part[copy.thread] & (copy.group != NOT_COMMITTED) & (copy.group < oldest)
            if here.any():
                at, thread = copy.at[here], copy.thread[here]
                arrived.append(Arrived(copy.buffer, copy.statement, at, thread))
            if not here.all():
                rest = (copy.at[~here], copy.thread[~here], copy.group[~here])
                left.append(_Started(copy.buffer, copy.statement, *rest))
        self.started = left
        return arrived

    def forget(self, buffer: Buffer) -> None:
        """Drop the copies to *buffer*, which no longer exists."""
        self.started = [copy for copy in self.started if copy.buffer is not buffer]

    def _mask(self, threads: Ints) -> Masks:
        mask = np.zeros(len(self.committed), dtype=np.bool_)
        mask[threads] = True
        return mask
