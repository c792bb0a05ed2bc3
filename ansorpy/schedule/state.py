"""The schedule state: stages, the steps that made them, and the decisions still open.

>>> from ansorpy.ir.tensor import compute, placeholder
>>> A = placeholder((8, 6), name="A")
>>> B = compute((8, 6), lambda i, j: A[i, j] * 2.0, name="B")
>>> state, (outer, inner) = State.initial([A, B]).split("B", "j", (3,))
>>> print(state.vectorize("B", [inner]).text())
placeholder A
for i in 0..8
  for j.0 in 0..2
    for j.1 in 0..3  # vectorized
      B[i, j] = ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from ansorpy.errors import ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.fragments import WARP
from ansorpy.ir.tensor import Tensor
from ansorpy.schedule.decisions import Decision, columns_of
from ansorpy.schedule.legality import Checked, check
from ansorpy.schedule.lowering.inlining import InlinedDAG, inlined
from ansorpy.schedule.refs import IterRef, count_of, factors_of, loop_name, loop_names
from ansorpy.schedule.stage import Attach, Iter, Stage, Tail, initial_stage
from ansorpy.schedule.steps import (
    annotate,
    carry,
    dot,
    fragments,
    lanes,
    loops,
    mma,
    place,
    shared_tiles,
    storage,
)
from ansorpy.schedule.steps.base import Count, Number, Step
from ansorpy.schedule.text import stages_text, state_card, state_summary

__all__ = ["History", "IterRef", "StageRef", "State"]

StageRef: TypeAlias = int | str | Stage


class History(tuple[Step, ...]):
    """The steps of a state, in order; prints as Python that repeats them on ``state``."""

    def __str__(self) -> str:
        return "\n".join(step.call() for step in self)


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """An immutable (partial) program: every primitive returns a new state.

    It holds three forms of the computation:

    - :attr:`definition` is the given computation, which the program must perform: the task's own
      definition, or one that an algorithm derived from it (Winograd's).  Steps are replayed on it,
      and records identify it.
    - :attr:`current_dag` (TVM's ``current_compute_dag``) has one operator for each stage, its
      :attr:`Stage.op`; primitives such as ``cache_write`` and ``rfactor`` rewrite it.  Use
      it to find which stages read which, and what an operator itself computes.
    - :attr:`inlined_dag` has one operator for each stage with loops; inlined stages are substituted
      into it.  Code is generated from it.  Use it for vector widths and memory accesses.

    Loops that a primitive creates are named after their origins: splitting ``i`` gives
    ``i.0, i.1, ...``, fusing ``i`` and ``j`` gives ``i@j@``.
    """

    definition: ComputeDAG
    current_dag: ComputeDAG
    stages: tuple[Stage, ...]
    history: History
    decisions: tuple[Decision, ...]

    @staticmethod
    def initial(definition: ComputeDAG | Sequence[Tensor]) -> State:
        """The default schedule of *definition*: each operator computed whole, loops in order."""
        dag = definition if isinstance(definition, ComputeDAG) else ComputeDAG.of(definition)
        return State(dag, dag, tuple(map(initial_stage, dag.ops)), History(), ())

    @staticmethod
    def replay(definition: ComputeDAG, steps: Iterable[Step]) -> State:
        """The state that *steps* make of *definition*."""
        state = State.initial(definition)
        for step in steps:
            state = state.do(step)
        return state

    # Lookups

    def stage(self, ref: StageRef) -> Stage:
        """The stage with this number or name; raises :class:`ScheduleError` naming all stages."""
        if isinstance(ref, Stage):
            return ref
        if isinstance(ref, int):
            found = self.stages[ref] if 0 <= ref < len(self.stages) else None
        else:
            found = self._by_name.get(ref)
        if found is None:
            raise ScheduleError(
                f"there is no stage number {ref}" if isinstance(ref, int)
                else f'there is no stage "{ref}"',
                hint=f"the stages are {', '.join(s.name for s in self.stages)}",
            )  # fmt: skip
        return found

    @cached_property
    def _by_name(self) -> dict[str, Stage]:
        return {stage.name: stage for stage in self.stages}

    def index(self, ref: StageRef) -> int:
        """Position of a stage in :attr:`stages`."""
        return list(self._by_name).index(self._on(ref))

    def attached(self, ref: StageRef) -> tuple[Stage, ...]:
        """The stages computed inside a loop of this one."""
        name = self.stage(ref).name
        return tuple(s for s in self.stages if s.attach is not None and s.attach.stage == name)

    def host_iters(self, ref: StageRef) -> frozenset[str]:
        """Names of the loops of this stage at which other stages are computed."""
        return frozenset(s.attach.iter for s in self.attached(ref) if s.attach is not None)

    def members(self, ref: StageRef) -> tuple[Stage, ...]:
        """The stages computed inside loops of this one, at any depth."""
        found: list[Stage] = []
        todo = [self.stage(ref)]
        while todo:
            here = self.attached(todo.pop())
            found += here
            todo += here
        return tuple(found)

    def root_of(self, ref: StageRef) -> Stage:
        """The stage at the root in whose loops this one is computed, at any depth, or itself."""
        stage = self.stage(ref)
        while stage.attach is not None:
            stage = self.stage(stage.attach.stage)
        return stage

    @cached_property
    def constant_stages(self) -> frozenset[str]:
        """Stages that run once, when constants are bound.

        These are the stages that depend only on constants and are not computed inside a stage that
        runs on every call.
        """
        names: set[str] = set()
        for stage in reversed(self.stages):
            inside = stage.attach is not None and stage.attach.stage not in names
            if stage.op in self.current_dag.constant_ops and not inside:
                names.add(stage.name)
        return frozenset(names)

    @cached_property
    def inlined_dag(self) -> InlinedDAG:
        """The operators of the stages with loops, inlined stages substituted into their readers."""
        return inlined(self.current_dag, self.stages)

    @property
    def is_open(self) -> bool:
        """True while some decision has no value; such a state cannot be lowered."""
        return bool(self.decisions)

    def text(self, stage: str | None = None, marked: set[str] | None = None) -> str:
        """The program as a loop nest; with *stage*, only its loops, *marked* ones with ``>``."""
        return stages_text(self, stage, marked or set())

    __str__ = text
    __repr__ = state_summary
    _repr_html_ = state_card

    # Building new states

    def do(self, step: Step) -> State:
        """Apply *step* and record it."""
        after = step.apply(self).open(*step.decisions(self))
        return replace(after, history=History((*self.history, step)))

    def replace_stage(self, new: Stage) -> State:
        """This state with *new* in place of its stage of that name."""
        return replace(self, stages=tuple(new if s.name == new.name else s for s in self.stages))

    def open(self, *decisions: Decision) -> State:
        """This state with more open decisions; they replace open ones of the same names."""
        names = {d.name for d in decisions}
        kept = tuple(d for d in self.decisions if d.name not in names)
        return replace(self, decisions=(*kept, *decisions)) if decisions else self

    def move_attached(self, stage: str, old: str, new: str) -> State:
        """Move stages computed at loop *old* of *stage* to loop *new*, which replaced it."""
        before, after = Attach(stage, old), Attach(stage, new)
        moved = (replace(s, attach=after) if s.attach == before else s for s in self.stages)
        return replace(self, stages=tuple(moved))

    def resolve(self, values: Mapping[str, int]) -> State:
        """The state with every open decision fixed: *values* maps columns to numbers."""
        return State.replay(self.definition, self.resolved(values))

    def resolved(self, values: Mapping[str, int]) -> list[Step]:
        """The steps of :meth:`resolve`, which may be impossible to apply."""
        missing = [c for c in columns_of(self.decisions) if c not in values]
        if missing:
            raise ScheduleError(f"no value given for {', '.join(missing)}")
        return [step.resolve(values) for step in self.history]

    def check(self) -> Checked:
        """Prove that this schedule computes its definition, whatever steps led to it.

        The result says how much was proved, and what could not be decided.  Primitives refuse
        what is never possible; this also finds errors that show only in the whole schedule: stages
        read outside of the loop they are computed in, threads that overwrite each other's memory,
        sums that overlapping tiles add to twice.

        Raises:
            ScheduleError: The schedule does not compute its definition, or a decision is open.
                The error names the step that made it illegal, and why.
        """
        return check(self)

    # The primitives; stage is a number or a name, loops are Iter objects or names

    def split(
        self,
        stage: StageRef,
        it: IterRef,
        inner: Sequence[Number],
        *,
        max_innermost: int = 64,
        tail: Tail = "guard",
    ) -> tuple[State, tuple[Iter, ...]]:
        """Split a loop into ``len(inner) + 1``; *inner* holds the inner factors.

        None leaves a factor open, to be decided with the others that are None; ``OneOf((8, 16))``
        leaves a choice that does not depend on the loop's extent.

        Law: ``old == (outer * f1 + i1) * f2 + i2 ...``; the outer extent follows by ceil-div.
        Where factors do not divide, *tail* ``"guard"``, ``"cover"`` or ``"whole"`` skips what lies
        outside, ``"shift"`` starts the last tile early enough to fit, ``"even"`` has tiles of
        ``n`` and ``n - 1``, and ``"peel"`` has a smaller last tile.  The last two need a second
        body, which a stage may have for one axis.  Open factors need not divide unless *tail* is
        ``"guard"``.  Raises :class:`ScheduleError` for a factor below 1 or an unknown loop.
        """
        name = self._on(stage)
        step = loops.SplitStep(name, loop_name(it), factors_of(inner), max_innermost, tail)
        return self._split(step, loop_name(it), len(step.factors))

    def follow_split(
        self, stage: StageRef, it: IterRef, source: tuple[StageRef, IterRef], n_split: int
    ) -> tuple[State, tuple[Iter, ...]]:
        """Split a loop with the factors of *source*'s split, even if these are still open.

        The new factors are its first ``n_split - 1`` inner factors and the product of the others.
        """
        origin = (self._on(source[0]), loop_name(source[1]))
        step = loops.FollowSplitStep(self._on(stage), loop_name(it), origin, n_split)
        return self._split(step, loop_name(it), n_split)

    def follow_fused_split(
        self, stage: StageRef, it: IterRef, sources: Sequence[tuple[StageRef, IterRef]], level: int
    ) -> tuple[State, tuple[Iter, ...]]:
        """Split a loop in two, with an inner extent that follows several splits.

        It is the product of the splits' *level*-th inner factors: the extent of the fused thread
        loop that fetches cooperatively.
        """
        origins = tuple((self._on(s), loop_name(i)) for s, i in sources)
        step = loops.FollowFusedSplitStep(self._on(stage), loop_name(it), origins, level)
        return self._split(step, loop_name(it), 1)

    def split_lanes(
        self, stage: StageRef, it: IterRef, number: Count
    ) -> tuple[State, tuple[Iter, ...]]:
        """Split a reduce loop into two; the inner one is a vector with a partial sum per lane.

        Each of the *number* lanes starts from the reduction's identity, and a tree combines them
        after all reduce loops, so this changes the order of additions.  More lanes than a vector
        has are several vectors summed in parallel.
        """
        step = lanes.SplitLanesStep(self._on(stage), loop_name(it), number)
        return self._split(step, loop_name(it), 1)

    def _split(self, step: Step, name: str, parts: int) -> tuple[State, tuple[Iter, ...]]:
        state = self.do(step)
        after = state.stage(step.stage)
        return state, tuple(after.iter(f"{name}.{k}") for k in range(parts + 1))

    def fuse(
        self, stage: StageRef, iters: Sequence[IterRef], together: int = 1
    ) -> tuple[State, Iter]:
        """Fuse neighbouring loops of one kind into one; a single loop stays as it is.

        With *together*, the last two are taken in strips of so many iterations, if these divide.
        """
        names = loop_names(iters)
        if len(names) == 1:
            return self, self.stage(stage).iter(names[0])
        step = loops.FuseStep(self._on(stage), names, together)
        state = self.do(step)
        return state, state.stage(step.stage).iter(step.fused)

    def reorder(self, stage: StageRef, iters: Sequence[IterRef]) -> State:
        """Permute the given loops among the positions they hold."""
        return self.do(loops.ReorderStep(self._on(stage), loop_names(iters)))

    def parallel(
        self, stage: StageRef, iters: Sequence[IterRef], *, count: Count | None = None
    ) -> State:
        """Run the first *count* of the loops (default all) as one parallel loop."""
        names = loop_names(iters)
        return self.do(annotate.ParallelStep(self._on(stage), names, count_of(count, names)))

    def vectorize(
        self, stage: StageRef, iters: Sequence[IterRef], *, count: Count | None = None
    ) -> State:
        """Run the last *count* of the innermost loops (default all given) as one vector loop."""
        names = loop_names(iters)
        return self.do(annotate.VectorizeStep(self._on(stage), names, count_of(count, names)))

    def unroll(self, stage: StageRef, it: IterRef) -> State:
        """Repeat the body of a loop instead of looping."""
        return self.do(annotate.UnrollStep(self._on(stage), loop_name(it)))

    def pragma_unroll(self, stage: StageRef, max_step: Count) -> State:
        """Unroll loops from the inside out while the body stays within *max_step* statements."""
        return self.do(annotate.PragmaUnrollStep(self._on(stage), max_step))

    def bind(self, stage: StageRef, it: IterRef, index: str) -> State:
        """Bind a loop to a GPU index: ``blockIdx.x``, ``threadIdx.x``, ``vthread``, ..."""
        return self.do(annotate.BindStep(self._on(stage), loop_name(it), index))

    def compute_at(self, stage: StageRef, target: StageRef, it: IterRef) -> State:
        """Compute, in each iteration of *target*'s loop, the part of *stage* that it reads."""
        return self.do(place.ComputeAtStep(self._on(stage), self._on(target), loop_name(it)))

    def reverse_compute_at(self, stage: StageRef, target: StageRef, it: IterRef) -> State:
        """Compute *stage* right after the tile of its producer *target* that it reads."""
        return self.do(place.ReverseComputeAtStep(self._on(stage), self._on(target), loop_name(it)))

    def compute_inline(self, stage: StageRef) -> State:
        """Substitute the stage's definition into its readers."""
        return self.do(place.ComputeInlineStep(self._on(stage)))

    def compute_root(self, stage: StageRef) -> State:
        """Compute the whole stage at the top level."""
        return self.do(place.ComputeRootStep(self._on(stage)))

    def cache_read(
        self, stage: StageRef, scope: str, readers: Sequence[StageRef], order: Sequence[int] = (),
        loads: Sequence[int] = (),
    ) -> tuple[State, str]:  # fmt: skip
        """Copy a tensor into a new stage that *readers* read instead; returns its name.

        Dimension ``d`` of the copy is dimension ``order[d]`` of the tensor (default: the same).
        *loads* limits it to some loads of one reader, numbered in order of appearance: the second
        operand of ``A[i, k] * A[j, k]`` is load 1.
        """
        names = tuple(map(self._on, readers))
        step = storage.CacheReadStep(self._on(stage), scope, names, tuple(order), tuple(loads))
        state = self.do(step)
        return state, state.stages[self.index(stage) + 1].name

    def cache_write(self, stage: StageRef, scope: str) -> tuple[State, str]:
        """Compute *stage* into a new one just before it, then copy; returns the new one's name."""
        state = self.do(storage.CacheWriteStep(self._on(stage), scope))
        return state, state.stages[self.index(stage)].name

    def rfactor(self, stage: StageRef, it: IterRef, factor_axis: int = 0) -> tuple[State, str]:
        """Make a reduce loop a space axis of a new stage; returns the new stage's name."""
        state = self.do(storage.RfactorStep(self._on(stage), loop_name(it), factor_axis))
        return state, state.stages[self.index(stage)].name

    def dot(self, stage: StageRef, function: str) -> State:
        """Sum dot products of words (``"dot_u8s8"``, ``"dot_bf16"``) instead of single products."""
        return self.do(dot.DotStep(self._on(stage), function))

    def mma(self, stage: StageRef, intrinsic: str, rows: str, columns: str, depth: str) -> State:
        """Sum products of fragments in the registers of warps (``mma.m16n8k16...``).

        The fragments are new stages, ``<operand>.warp`` and ``<stage>.warp``.  *rows* is an axis
        of one factor alone, *columns* of the other, *depth* is summed over.
        """
        return self.do(mma.MmaStep(self._on(stage), intrinsic, rows, columns, depth))

    def hold(self, stage: StageRef, intrinsic: str) -> State:
        """Keep a stage in the registers of warps, in fragments like the sums of *intrinsic*."""
        return self.do(fragments.HoldStep(self._on(stage), intrinsic))

    def quads(self, stage: StageRef, *, team: int = WARP) -> State:
        """Reduce rows in the lanes of a *team* that share each: ``<stage>.lane``, ``.quad``."""
        return self.do(fragments.QuadsStep(self._on(stage), team))

    def ones(self, stage: StageRef) -> State:
        """Sum 16-bit values as a product with ones, ``<stage>.columns``, for tensor cores."""
        return self.do(fragments.OnesStep(self._on(stage)))

    def carry(
        self, stage: StageRef, it: IterRef, members: Sequence[StageRef], top: StageRef
    ) -> State:
        """Continue *members* in a loop of the sum *stage*; sums are rescaled as *top* changes."""
        names = tuple(map(self._on, members))
        return self.do(carry.CarryStep(self._on(stage), loop_name(it), names, self._on(top)))

    def pack(self, stage: StageRef, tensor: StageRef) -> State:
        """Rearrange a constant at bind time into the order in which the stage's loops read it."""
        return self.do(storage.PackStep(self._on(stage), self._on(tensor)))

    def tensorize(self, stage: StageRef, it: IterRef, intrinsic: str) -> State:
        """Replace a loop and those inside it by a declared instruction."""
        return self.do(annotate.TensorizeStep(self._on(stage), loop_name(it), intrinsic))

    def pad(self, stage: StageRef, number: Count) -> State:
        """Leave *number* elements unused after each row of a tile in shared memory."""
        return self.do(shared_tiles.PadStep(self._on(stage), number))

    def pipeline(self, stage: StageRef, it: IterRef, depth: Count) -> State:
        """Copy the shared tiles computed at a reduce loop up to *depth* - 1 iterations ahead."""
        return self.do(shared_tiles.PipelineStep(self._on(stage), loop_name(it), depth))

    def bulk(self, stage: StageRef, number: Count = 1) -> State:
        """Let a GPU's copy engine copy a swizzled tile as a box of its source.

        *number* neighbouring blocks share a copy that is the same for them; 0 changes nothing.
        """
        return self.do(shared_tiles.BulkStep(self._on(stage), number))

    def set_scope(self, stage: StageRef, scope: str) -> State:
        """Keep a stage's result in ``workspace``, ``local`` or ``shared`` memory."""
        return self.do(annotate.ScopeStep(self._on(stage), scope))

    def set_kernel_style(self, stage: StageRef, style: str) -> State:
        """Record how threads share the GPU kernel of *stage*, for the rules that annotate it.

        *style* is the value of a :class:`~ansorpy.schedule.stage.KernelStyle`.
        """
        return self.do(annotate.KernelStyleStep(self._on(stage), style))

    def _on(self, ref: StageRef) -> str:
        return self.stage(ref).name
