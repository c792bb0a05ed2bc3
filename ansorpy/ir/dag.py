"""The compute DAG: the operators of one task in dependency order, and the reads between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from ansorpy.errors import UsageError
from ansorpy.ir.analysis.sharing import post_order
from ansorpy.ir.expr import Expr, Load, SizeVar, walk
from ansorpy.ir.extents import Extent, dims_of, least
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.strides import Strides, dense_strides, normalised
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["ComputeDAG", "in_row_major_order", "loads_of"]


def in_row_major_order(shape: Sequence[Extent], strides: Sequence[Extent]) -> bool:
    """True if every element lies after all elements that precede it in index order."""
    reach: Extent = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and least(stride - reach) < 0:
            return False
        reach += (extent - 1) * stride
    return True


def loads_of(op: ComputeOp) -> dict[Tensor, list[tuple[Expr, ...]]]:
    """Index tuples of the loads in *op*'s body, by the tensor read, in order of appearance.

    They are distinct: equal loads of one body are one node.
    """
    found: dict[Tensor, list[tuple[Expr, ...]]] = {}
    for e in walk(op.body):
        if isinstance(e, Load) and isinstance(e.source, Tensor):
            found.setdefault(e.source, []).append(e.indices)
    return found


_ORDER = "list every placeholder, then the outputs"


def _demand_tensors(given: object) -> None:
    if not isinstance(given, Sequence):
        raise UsageError(f"{given!r} is not a list of tensors", hint=_ORDER)
    strangers = [t for t in given if not isinstance(t, PlaceholderOp | ComputeOp)]
    if strangers:
        raise UsageError(
            f"{strangers[0]!r} is not a tensor", hint="pass results of placeholder() and compute()"
        )
    if not any(isinstance(t, ComputeOp) for t in given):
        raise UsageError("nothing to compute", hint="end the list with the tensor to compute")


class ComputeDAG:
    """Operators that lead to *outputs*, in topological order (producers first).

    ``args`` are the placeholders in the caller's order; ``ops`` holds placeholders and
    computes.  A DAG is immutable; analyses are cached on it.

    Args:
        strides: By name, for inputs and outputs that are parts of larger tensors: elements
            between neighbours along each dimension (:mod:`ansorpy.ir.strides`).  They affect the
            memory layout, not the computation.  All other tensors are dense.

    Raises:
        ValueError: Two operators share a name, an output or argument is given twice, *args* misses
            a placeholder or has one that nothing reads, or *strides* names another tensor or is not
            in row-major order.
    """

    def __init__(
        self,
        outputs: Sequence[Tensor],
        args: Sequence[PlaceholderOp] | None = None,
        strides: Mapping[str, Strides] | None = None,
    ):
        self.outputs = tuple(outputs)
        repeated = sorted({op.name for op in self.outputs if self.outputs.count(op) > 1})
        if repeated:
            raise ValueError(f"an output is given once; given twice: {', '.join(repeated)}")
        self.ops = _topological(self.outputs)
        reached = [op for op in self.ops if isinstance(op, PlaceholderOp)]
        self.args = tuple(args) if args is not None else tuple(reached)
        missing = [op.name for op in reached if op not in self.args]
        if missing:
            raise ValueError(f"the arguments lack the placeholders {', '.join(missing)}")
        unread = sorted({op.name for op in self.args if op not in reached})
        if unread:
            raise ValueError(f"no output depends on the arguments {', '.join(unread)}")
        repeated = sorted({op.name for op in self.args if self.args.count(op) > 1})
        if repeated:
            raise ValueError(f"an argument is given once; given twice: {', '.join(repeated)}")
        names = [op.name for op in self.ops]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"operators must have different names; used twice: {', '.join(twice)}")
        if any(op.routine for op in self.computes) and len(self.computes) > 1:
            raise ValueError("what a routine computes is a definition of its own")
        self.strides = self._checked(strides or {})

    def _checked(self, strides: Mapping[str, Strides]) -> Mapping[str, Strides]:
        """Check *strides*, and drop those that are dense."""
        given = {op.name: op for op in (*self.args, *self.outputs)}
        found = {}
        for name, steps in strides.items():
            op = given.get(name)
            if op is None or (isinstance(op, PlaceholderOp) and op.constant):
                raise ValueError(f"{name} is neither an input nor an output, so it has no strides")
            if len(steps) != op.ndim or not in_row_major_order(op.shape, steps):
                raise ValueError(f"{name} of shape {op.shape} cannot have the strides {steps}")
            steps = normalised(op.shape, steps)
            if steps != dense_strides(op.shape):
                found[name] = steps
        return found

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> ComputeDAG:
        """The DAG of ``[placeholders..., outputs...]``, the form that :func:`ansorpy.tune` accepts.

        Raises:
            UsageError: It is no list of tensors, nothing is to be computed, two dimensions share a
                name, by which libraries know them, or the class refuses the tensors.
        """
        _demand_tensors(tensors)
        outputs = [t for t in tensors if isinstance(t, ComputeOp)]
        try:
            made = cls(outputs, [t for t in tensors if isinstance(t, PlaceholderOp)])
        except ValueError as error:
            raise UsageError(str(error), hint=_ORDER) from None
        named: dict[str, Dim] = {}
        for dim in made.dims:
            if named.setdefault(dim.name, dim) != dim:
                raise UsageError(
                    f"two dimensions have one name: {named[dim.name]} and {dim}",
                    hint="make the dimension once, or give the other one another name",
                )
        return made

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions on which it depends, in order of appearance, arguments first."""
        return self._dims_with(step for strides in self.strides.values() for step in strides)

    @cached_property
    def shape_dims(self) -> tuple[Dim, ...]:
        """Those of :attr:`dims` on which shapes, loops or elements depend, not only strides."""
        return self._dims_with(())

    @property
    def main_dim(self) -> Dim:
        """The one of :attr:`dims` whose sizes differ most: its size decides which schedule is run.

        If possible, it is not one of strides alone.
        """
        return max(self.shape_dims or self.dims, key=lambda dim: dim.high / max(dim.low, 1))

    def _dims_with(self, steps: Iterable[Extent]) -> tuple[Dim, ...]:
        """The dimensions of all extents and expressions, and those of *steps*."""
        computed = (a.extent for op in self.computes for a in (*op.axes, *op.reduce_axes))
        shapes = (extent for op in self.args for extent in op.shape)
        found = dict.fromkeys(dims_of([*shapes, *computed, *steps]))
        for op in self.computes:
            found.update((e.dim, None) for e in walk(op.body) if isinstance(e, SizeVar))
        return tuple(found)

    @cached_property
    def computes(self) -> tuple[ComputeOp, ...]:
        return tuple(op for op in self.ops if isinstance(op, ComputeOp))

    @property
    def routine(self) -> Routine | None:
        """The routine that computes its only operator; None if formulas define its operators."""
        return self.computes[-1].routine if self.computes else None

    def reads(self, op: Tensor) -> Mapping[Tensor, tuple[tuple[Expr, ...], ...]]:
        """For each producer, the index tuples with which *op* reads it."""
        return self._reads.get(op, {})

    @cached_property
    def _reads(self) -> dict[Tensor, dict[Tensor, tuple[tuple[Expr, ...], ...]]]:
        return {
            op: {producer: tuple(indices) for producer, indices in loads_of(op).items()}
            for op in self.computes
        }

    def readers(self, op: Tensor) -> tuple[ComputeOp, ...]:
        """The operators that read *op*, in topological order."""
        return tuple(c for c in self.computes if op in self.reads(c))

    def leading_to(self, op: Tensor) -> tuple[ComputeOp, ...]:
        """The operators on which *op* depends, itself among them, in topological order."""
        needed = {op}
        for compute in reversed(self.computes):
            if compute in needed:
                needed.update(self.reads(compute))
        return tuple(compute for compute in self.computes if compute in needed)

    @property
    def signature(self) -> str:
        """Its arguments and outputs as text: ``A, B -> C``."""
        args, outputs = (", ".join(op.name for op in ops) for ops in (self.args, self.outputs))
        return f"{args} -> {outputs}".strip()

    def __repr__(self) -> str:
        return f"<ComputeDAG {self.signature}>"

    def is_output(self, op: Tensor) -> bool:
        """Whether *op* is one of the outputs."""
        return op in self.outputs

    @cached_property
    def constant_ops(self) -> frozenset[Tensor]:
        """Operators that depend on constant placeholders only, so that they run at bind time.

        Outputs, operators whose shapes depend on a call or that ask for it, and operators that
        read such ones are excluded: each call computes them anew.
        """
        constant: set[Tensor] = set()
        for op in self.ops:
            if isinstance(op, PlaceholderOp):
                if op.constant:
                    constant.add(op)
            elif self.is_output(op) or dims_of(op.shape) or _is_of_each_call(op):
                continue
            elif self.reads(op) and all(p in constant for p in self.reads(op)):
                constant.add(op)
        return frozenset(constant)


def _is_of_each_call(op: Tensor) -> bool:
    return isinstance(op, ComputeOp) and op.attrs.each_call


def _topological(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Depth-first post-order: producers come before consumers, in reading order."""

    def producers(op: Tensor) -> Sequence[Tensor]:
        return tuple(loads_of(op)) if isinstance(op, ComputeOp) else ()

    return tuple(post_order(outputs, producers))
