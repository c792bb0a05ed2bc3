"""The interface of routines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from ansorpy.arrays import Array
from ansorpy.ir.loops import Buffer, Stmt

__all__ = ["Routine"]


@dataclass(frozen=True)
class Routine(ABC):
    """An algorithm that computes one tensor from others; its settings are booleans.

    ``name`` identifies it in files (:mod:`ansorpy.ir.routines.table`).
    """

    name: ClassVar[str]

    @abstractmethod
    def body(self, inputs: Sequence[Buffer], output: Buffer) -> Stmt:
        """The loops that compute *output*, every element of it, from *inputs*."""

    @abstractmethod
    def evaluate(self, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
        """The result of this *shape* in numpy, which interpreters use."""

    @property
    def settings(self) -> dict[str, bool]:
        """Its fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
