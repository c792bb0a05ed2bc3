"""Parallel loops as regions, which code generators make functions that threads call."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from ansorpy.codegen.accesses import buffers_used
from ansorpy.ir.expr import SizeVar, Var, walk
from ansorpy.ir.extents import Extent, prod_of
from ansorpy.ir.loops import Buffer, For, ForKind, Stmt, expressions, walk_stmts

__all__ = ["Region"]


@dataclass(frozen=True)
class Region:
    """Consecutive parallel loops as one iteration space, and what their *body* uses from outside.

    Args:
        name: The name of its function.
        buffers: Those from outside, mapped to whether the body writes them.
        variables: Those from outside, with the sizes of all dimensions.
    """

    name: str
    loops: tuple[For, ...]
    body: Stmt
    buffers: Mapping[Buffer, bool]
    variables: tuple[Var, ...]

    @staticmethod
    def of(
        name: str, loop: For, buffers: Container[Buffer], variables: Mapping[Var, object]
    ) -> Region:
        """The region of *loop* where *buffers* and *variables* are known outside."""
        loops: list[For] = []
        body: Stmt = loop
        while isinstance(body, For) and body.kind is ForKind.PARALLEL:
            loops.append(body)
            body = body.body
        used = {buffer: w for buffer, w in buffers_used(body).items() if buffer in buffers}
        free = {
            var: None
            for stmt in walk_stmts(body)
            for root in expressions(stmt)
            for var in walk(root)
            if isinstance(var, Var) and var in variables
        }
        free |= {var: None for var in variables if isinstance(var, SizeVar)}
        return Region(name, tuple(loops), body, used, tuple(free))

    @property
    def total(self) -> Extent:
        """Number of iterations."""
        return prod_of(loop.extent for loop in self.loops)
