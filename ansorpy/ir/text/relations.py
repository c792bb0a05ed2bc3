"""Print access relations in isl's notation."""

from __future__ import annotations

from collections.abc import Iterator

from ansorpy.ir.analysis.access import Access, accesses, domain_of
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import ComputeOp

__all__ = ["relations_text"]


def relations_text(dag: ComputeDAG) -> str:
    """The accesses of each stage, one line for each distinct load and each of its cases.

    >>> from ansorpy.ir.builders import select, sum
    >>> from ansorpy.ir.tensor import compute, placeholder, reduce_axis
    >>> A, W = placeholder((4, 8), name="A"), placeholder((3,), name="W")
    >>> k = reduce_axis(3, name="k")
    >>> B = compute((4, 10), lambda i, j: select(j > 0, A[i, j - 1], 0.0), name="B")
    >>> C = compute((4, 8), lambda i, j: sum(B[i, j + k] * W[k], axis=k), name="C")
    >>> print(relations_text(ComputeDAG([C])))
    B over i < 4, j < 10
      B[i, j] reads A[i, -1 + j] : j > 0
    C over i < 4, j < 8, k < 3
      C[i, j, k] reads B[i, j + k]
      C[i, j, k] reads W[k], again along i, j
    """
    return "\n".join(line for op in dag.computes for line in _stage(op))


def _stage(op: ComputeOp) -> Iterator[str]:
    over = ", ".join(f"{axis.name} < {axis.extent}" for axis in (*op.axes, *op.reduce_axes))
    yield f"{op.name} over {over}" if over else op.name
    lines = (line for access in accesses(op) for line in _load(access))
    yield from (f"  {line}" for line in dict.fromkeys(lines))


def _load(access: Access) -> list[str]:
    """The cases of a load; "may" means that isl cannot represent an index or a condition of it."""
    relation = access.relation
    verb = "reads" if relation.exact else "may read"
    again = [a.name for a in access.axes if a.extent != 1 and a not in access.moving]
    beyond = f", again along {', '.join(again)}" if again else ""
    shown = str(relation.map.gist_domain(domain_of(access.reader).box))
    cases = shown.removeprefix("{ ").removesuffix(" }").split("; ")
    return [case.replace(" -> ", f" {verb} ", 1) + beyond for case in cases]
