"""Conditions that the sketch rules test, named as in the paper and TVM.

They look at access relations (:mod:`ansorpy.ir.analysis.access`): an index qualifies when it
equals one axis plus a constant for all values of the axes, however it is written.  An axis of
extent 1 counts as a constant.  Differs: TVM looks at the syntax.  The published sketch counts are
reproduced nevertheless.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ansorpy.ir.analysis.access import Access, accesses, reads
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    Call,
    Cast,
    Function,
    Select,
    walk,
)
from ansorpy.ir.loops import Scope
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.rules.matching.relations import (
    consumers,
    has_reduce_iters,
    is_input,
    is_tiled,
)
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = [
    "JOBS_PER_CORE", "AxisAccess", "axis_access", "elementwise_match", "fusible_consumer",
    "has_branch", "has_data_reuse", "has_single_consumer_once_inlined",
    "has_single_elementwise_matched_consumer", "is_computed_where_read", "is_elementwise",
    "is_product", "is_repeated_in_tiles", "is_strictly_inlineable",
    "needs_cross_thread_reduction", "needs_rfactor", "num_common_outer_iterators", "reads_along",
    "reads_in_order", "reads_in_place", "reduce_extent",
]  # fmt: skip

JOBS_PER_CORE = 16
"""Parallel iterations per core that are considered enough (TVM)."""


@dataclass(frozen=True)
class AxisAccess:
    """How a load uses the space axes of its reader, except those of extent 1.

    Args:
        missing: Whether no index uses some axis (a broadcast).
        duplicated: Whether several indices use the same axis.
        same_order: Whether the indices use the axes in the reader's order.
        shifted: Whether a constant is added to some axis.
    """

    missing: bool
    duplicated: bool
    same_order: bool
    shifted: bool

    @property
    def in_place(self) -> bool:
        """True for the element at the reader's own indices: every axis exactly once, in order."""
        return self.same_order and not (self.missing or self.duplicated or self.shifted)


def axis_access(access: Access) -> AxisAccess | None:
    """How *access* uses the axes; None unless each index is a constant or a space axis plus one."""
    axes, used, shifted = access.reader.axes, list[int](), False
    for shift in access.shifts:
        if shift is None or (shift.axis is not None and shift.axis not in axes):
            return None
        if shift.axis is not None:
            used.append(axes.index(shift.axis))
            shifted = shifted or shift.offset != 0
    return AxisAccess(
        missing=any(axis.extent > 1 and n not in used for n, axis in enumerate(axes)),
        duplicated=len(set(used)) < len(used),
        same_order=used == sorted(used),
        shifted=shifted,
    )


def has_branch(op: ComputeOp) -> bool:
    """True when the body selects between two values (such as a padding guard)."""
    return any(isinstance(e, Select) for e in walk(op.body))


def is_strictly_inlineable(
    state: State, stage: Stage, expensive: frozenset[Function] = frozenset({Function.EXP})
) -> bool:
    """True when inlining costs nothing: reads in axis order, no branch, no *expensive* call.

    A read may leave out axes (broadcast).  A stage that reads nothing is a constant and always
    qualifies.  Paper: IsStrictInlinable, OSDI'20 Table 1; *expensive* is TVM's.
    """
    op = stage.compute
    if not state.current_dag.reads(op):
        return True
    if not reads_in_order(stage):
        return False
    calls = (e.fn for e in walk(op.body) if isinstance(e, Call))
    return not has_branch(op) and not any(fn in expensive for fn in calls)


def is_repeated_in_tiles(state: State, stage: Stage) -> bool:
    """True for arithmetic on inputs that a product's tiles would repeat at every read if inlined.

    An example is an activation before a matrix product: inlined, it costs about as much as the
    product itself.  Stages that only move elements cost nothing there and do not count.
    """
    if is_input(state, stage) or not _does_arithmetic(stage.compute):
        return False
    dag = state.current_dag
    if any(op.reduce_axes and op not in dag.constant_ops for op in dag.leading_to(stage.op)):
        return False
    return any(
        is_product(state, reader) and reader.op.size * reduce_extent(reader) > stage.op.size
        for reader in consumers(state, stage)
    )


def _does_arithmetic(op: ComputeOp) -> bool:
    """True when the body computes with elements, not only with indices."""
    return any(
        isinstance(e, Binary | Call | Cast) and e.dtype not in (DType.INT64, DType.BOOL)
        for e in walk(op.body)
    )


def reads_in_order(stage: Stage) -> bool:
    """True when every index is one axis plus a constant, in axis order; axes may be left out."""
    for access in accesses(stage.compute):
        use = axis_access(access)
        if use is None or use.duplicated or not use.same_order:
            return False
    return True


def has_data_reuse(state: State, stage: Stage) -> bool:
    """True when the stage re-reads its inputs enough for tiling to pay (matmul, conv2d).

    A read is broadcast when it stays at the same element along some space axis.  The condition
    holds with two broadcast reads, or with one and a reduction.  Reads of one tensor that move
    along the same axes count as one.
    Paper: HasDataReuse, OSDI'20 Table 1.  Differs: the paper only gives examples; the
    threshold here is that of TVM's ``NeedsMultilevelTiling`` (``compute_dag.cc``), which merges
    all reads of a tensor and so finds no reuse in ``A[i, k] * A[j, k]``.
    """
    if is_input(state, stage) or stage.compute.attrs.unroll_axes:
        return False
    op = stage.compute
    space = {axis for axis in op.axes if axis.extent > 1}
    apart = {(access.tensor, access.moving) for access in accesses(op)}
    broadcast = sum(not space <= moving for _, moving in apart)
    return broadcast >= 2 or (broadcast == 1 and bool(op.reduce_axes))


def is_product(state: State, stage: Stage) -> bool:
    """True for a reduction with data reuse, such as a matrix product or a convolution."""
    return has_reduce_iters(stage) and has_data_reuse(state, stage)


def elementwise_match(dag: ComputeDAG, op: Tensor, target: Tensor) -> bool:
    """True when a chain of sole readers leads from *op* to *target*, each of them elementwise."""
    current = op
    while current is not target:
        readers = dag.readers(current)
        if len(readers) != 1 or not isinstance(current, ComputeOp):
            return False
        (reader,) = readers
        if not is_elementwise(reader, current):
            return False
        current = reader
    return True


def is_elementwise(reader: ComputeOp, tensor: Tensor) -> bool:
    """True when *reader*, of the shape of *tensor*, reads it at its own indices plus constants."""
    if reader.shape != tensor.shape:
        return False
    return all(_keeps(a, d) for a in reads(reader, tensor) for d in range(tensor.ndim))


def _keeps(access: Access, d: int) -> bool:
    """True when index *d* is the reader's axis of the same number plus a constant."""
    axis, shift = access.reader.axes[d], access.shifts[d]
    return shift is not None and shift.axis is (axis if axis.extent > 1 else None)


def has_single_elementwise_matched_consumer(state: State, stage: Stage) -> bool:
    """True when the only consumer reads the stage elementwise and may host its tiles.

    Stage and consumer must not both reduce, and the consumer must not be a copy into shared memory.
    Paper: HasFusibleConsumer, OSDI'20 Table 1.
    """
    readers = consumers(state, stage)
    if len(readers) != 1 or state.current_dag.is_output(stage.op):
        return False
    (reader,) = readers
    if has_reduce_iters(stage) and has_reduce_iters(reader):
        return False
    return reader.scope is not Scope.SHARED and elementwise_match(
        state.current_dag, stage.op, reader.op
    )


def has_single_consumer_once_inlined(state: State, stage: Stage) -> bool:
    """True when, after inlining, one stage reads *stage*, elementwise in all its reads.

    Several readers in the definition (``x * sigmoid(x)``) become one when all but the last are
    inlined; Ansor's :func:`has_single_elementwise_matched_consumer` requires a chain.
    """
    inlined = state.inlined_dag
    readers = inlined.readers.get(stage.name, ())
    if len(readers) != 1 or state.current_dag.is_output(stage.op):
        return False
    reader, op = state.stage(readers[0]), inlined.ops[readers[0]]
    both_reduce = has_reduce_iters(stage) and has_reduce_iters(reader)
    return not both_reduce and reader.scope is not Scope.SHARED and is_elementwise(op, stage.op)


def reads_in_place(state: State, reader: Stage, stage: Stage) -> bool:
    """True when each element of *reader* depends only on the element of *stage* at its own indices.

    Inlined stages between them count as part of *reader*.
    """
    found = [axis_access(a) for a in reads(state.inlined_dag.ops[reader.name], stage.op)]
    return all(use is not None and use.in_place for use in found)


def fusible_consumer(state: State, stage: Stage, *, once_inlined: bool = False) -> Stage | None:
    """The single elementwise-matched consumer if its loops can still follow the stage's tiles.

    With *once_inlined*, readers that are inlined into one final reader count as that one.

    Differs: TVM aborts where the consumer is already tiled (it re-reads inputs itself) or
    reduces; here such a pair is not fused.
    """
    is_single = (
        has_single_consumer_once_inlined if once_inlined
        else has_single_elementwise_matched_consumer
    )  # fmt: skip
    if not is_single(state, stage):
        return None
    (reader,) = consumers(state, stage)
    return None if is_tiled(reader) or has_reduce_iters(reader) else reader


def is_computed_where_read(state: State) -> bool:
    """True when every compute_at of *state* is legal: all readers run inside the same loop.

    The sizes of the regions do not matter, so decisions may be open.  For a state without open
    decisions, :meth:`~ansorpy.schedule.state.State.check` proves more.
    """
    bounds = Bounds(state, {})
    return all(
        bounds.within(reader, s.attach.stage, state.stage(s.attach.stage).index(s.attach.iter))
        for s in state.stages
        if s.attach is not None
        for reader in bounds.inlined_dag.readers.get(s.name, ())
    )


def reduce_extent(stage: Stage) -> int:
    """Product of the operator's reduce extents; 1 if it has none."""
    return prod(axis.extent for axis in stage.compute.reduce_axes)


def needs_rfactor(state: State, stage: Stage, cores: int) -> bool:
    """True when a reduction has too few space iterations to keep *cores* busy.

    Paper: HasMoreReductionParallel, OSDI'20 Table 1; thresholds are TVM's ``NeedsRfactor``.
    """
    if is_input(state, stage) or not stage.compute.reduce_axes:
        return False
    space, reduction = stage.op.size, reduce_extent(stage)
    if has_data_reuse(state, stage):
        return space <= reduction and space <= JOBS_PER_CORE * cores
    return reduction > cores


def needs_cross_thread_reduction(state: State, stage: Stage, target: Target) -> bool:
    """True when the threads of a block should share a reduction (CUDA's counterpart of rfactor)."""
    if is_input(state, stage) or not stage.compute.reduce_axes:
        return False
    space, reduction = stage.op.size, reduce_extent(stage)
    if has_data_reuse(state, stage):
        return space <= target.max_threads_per_block and space < reduction
    return reduction > target.warp_size


def num_common_outer_iterators(dag: ComputeDAG, op: Tensor, target: Tensor) -> int:
    """The number of leading dimensions that every reader from *op* to *target* keeps unchanged.

    The minimum over all paths; 0 when *target* does not depend on *op*.
    """
    common: dict[Tensor, int] = {op: op.ndim}
    for reader in dag.computes:
        through = [
            min(common[p], _common_outer(reader, p))
            for p in dag.reads(reader)
            if p in common and p is not target
        ]
        if through:
            common[reader] = min(through)
    return common.get(target, 0)


def _common_outer(reader: ComputeOp, producer: Tensor) -> int:
    count = 0
    for d, axis in enumerate(reader.axes[: producer.ndim]):
        if axis.extent != producer.shape[d]:
            break
        if not all(_keeps(access, d) for access in reads(reader, producer)):
            break
        count += 1
    return count


def reads_along(state: State, stage: Stage, axis: Axis, max_stride: int) -> bool:
    """True when some read moves along memory with *axis*, and none by more than *max_stride*.

    Reads of an inlined producer count as reads of the stage itself.
    """
    follows = False
    for access in accesses(state.inlined_dag.ops.get(stage.name, stage.compute)):
        for d in range(access.tensor.ndim):
            step = access.step(d, axis)
            if step == 0:
                continue
            if step is None or d != access.innermost or not 0 < step <= max_stride:
                return False
            follows = True
    return follows
