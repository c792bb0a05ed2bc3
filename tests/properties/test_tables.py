"""What the tables say of a program equals what a walk over its statements finds.

The search ranks and refuses candidates by columns alone, and builds few of them: a column that
drifts from what lowering does misleads it silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from hypothesis import assume, given, reject
from hypothesis.strategies import integers, sampled_from

from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.vectors import lanes_of, loop_lanes
from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.cost.analytic.cpu.tile import tile_of
from ansorpy.cost.nest_view import view_nest
from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import ForKind
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.rules.annotation.limit_code_size import (
    CALL_INSTRUCTIONS,
    MOST_VECTORS,
    TREE_INSTRUCTIONS,
    instructions,
)
from ansorpy.rules.matching.kernels import kernels
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CPU, ANSOR_CUDA, CPU, CUDA, Preset
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.shared_memory import shared_bytes
from ansorpy.schedule.stage import SplitRelation, Stage
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import Leaf, Loop, Nest, build_nest, components
from ansorpy.schedule.tables.size import Column, Size
from ansorpy.target import Target
from tests import tensor_cores
from tests.budget import examples
from tests.properties.random_dags import random_state
from tests.properties.random_operators import random_definition
from tests.properties.walker import Ran, Statement, plain, statements, written_out
from tests.rules.gpu_workloads import WORKLOADS


def at(size: Size, row: int) -> int:
    assert isinstance(size, int | Column)
    return int(size.values[row]) if isinstance(size, Column) else size


def kind_of(loop: Loop, row: int) -> ForKind:
    """How the table says that a loop runs."""
    marks = {
        ForKind.PARALLEL: loop.parallel, ForKind.VECTORIZED: loop.vector,
        ForKind.UNROLLED: loop.unroll,
    }  # fmt: skip
    return next((kind for kind, mark in marks.items() if at(mark, row)), loop.index)


def expected(state: State, leaf: Leaf, row: int) -> list[Ran]:
    """The loops of several iterations around a statement; the parts of a fused loop are one."""
    found: dict[tuple[str, str], Ran] = {}
    for loop in leaf.loops:
        stage = state.stage(loop.stage)
        name = next(it.name for it in stage.iters if loop.name in components(stage, it.name))
        if stage.name == leaf.stage and stage.tensorized and stage.tensorized[0] == name:
            break  # an instruction instead of the loops from here on
        before = found.get((stage.name, name), Ran(plain(name), 1, kind_of(loop, row)))
        extent = before.extent * at(loop.extent, row)
        found[stage.name, name] = before._replace(extent=extent)
    return [ran for ran in found.values() if ran.extent > 1]


def unordered(loops: Iterable[Ran], wanted: Sequence[Ran]) -> tuple[frozenset[Ran], list[Ran]]:
    """The loops over blocks and threads, whose order means nothing, and the others in order.

    Lowering makes a virtual thread the innermost loop.
    """
    virtual = {ran for ran in wanted if ran.kind is ForKind.VTHREAD}
    inner = {ran._replace(kind=ForKind.UNROLLED): ran for ran in virtual}
    named = [inner.get(ran, ran) for ran in loops]
    return (
        frozenset(ran for ran in named if ran.kind.is_bound),
        [ran for ran in named if not ran.kind.is_bound],
    )


def in_full(made: Statement, stage: Stage, wanted: Sequence[Ran]) -> Iterator[Ran]:
    """The loops around a statement as the schedule has them.

    - The threads that fill a tile together are those of its own loops.
    - A loop over more threads than there are runs in several turns.
    """
    own = {plain(it.name) for it in stage.iters}
    extents = {ran.name: ran.extent for ran in wanted}
    turns = {ran.name[:-5]: ran.extent for ran in made.loops if ran.name.endswith(".turn")}
    for ran in made.loops:
        whole = extents.get(ran.name, 0)
        if ran.name.endswith(".turn") or (ran.name not in own and ran.kind in stage.shared_by):
            continue
        in_turns = ran.name in turns and turns[ran.name] == -(-whole // ran.extent)
        yield ran._replace(extent=whole) if in_turns else ran


def without_last(stage: Stage, wanted: Sequence[Ran]) -> list[Ran]:
    """*wanted* if the last part of a sum in lanes, which is shorter, has a body of its own."""
    steps = {
        plain(r.children[0]) for r in stage.relations
        if isinstance(r, SplitRelation) and r.children[1:] == (stage.lanes,)
    }  # fmt: skip
    shorter = [
        ran._replace(extent=ran.extent - 1) if ran.name in steps else ran for ran in wanted
    ]  # fmt: skip
    return [ran for ran in shorter if ran.extent > 1]


def check(state: State, lowered: Lowered, nest: Nest, row: int) -> None:
    """Assert that the loops of every statement run as row *row* of *nest* says."""
    found = statements(lowered.run.body)
    for leaf in nest.leaves:
        rows = row if leaf.settings is None else int(leaf.settings.of[row])
        wanted, stage = expected(state, leaf, rows), state.stage(leaf.stage)
        made = [s for s in found[leaf.stage] if s.updates or not leaf.op.reduce_axes]
        ran = [unordered(in_full(s, stage, wanted), wanted) for s in made]
        alike = (unordered(w, ()) for w in (wanted, without_last(stage, wanted)))
        assert any(w in ran for w in alike), f"{leaf.stage}: {wanted}, not {ran}\n{state.text()}"


@examples(150)
@given(seed=integers(0, 2**31))
def test_loops_of_random_schedules_run_as_their_table_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = random_state(rng, int(rng.integers(1, 14)))
    try:
        lowered = lower(state)
    except ScheduleError:
        reject()  # not legal
    check(state, lowered, build_nest(state, {}), 0)


X86, SM = Target.parse("x86-64-v3"), Target.parse("sm_90")


@examples(60)
@given(
    seed=integers(0, 2**31),
    preset=sampled_from([(CPU, X86), (ANSOR_CPU, X86), (CUDA, SM), (ANSOR_CUDA, SM)]),
)
def test_loops_of_candidates_run_as_their_table_says(
    seed: int, preset: tuple[Preset, Target]
) -> None:
    rng = np.random.default_rng(seed)
    task = Task(random_definition(rng), preset[1], 4)
    sketch = SketchSampler(task, preset[0]).draw_one(rng)
    table = sketch.sample(32, rng)
    table = table[sketch.valid(table)]
    assume(len(table))
    nest = sketch.space.nest(table)
    for row in range(min(2, len(table))):
        try:
            state = sketch.resolve(table[row])
            lowered = lower(state)
        except ScheduleError:
            reject()  # a trial that fails with a reason
        check(state, lowered, nest, row)


DTYPES = ("float64", "float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32")


@examples(60)
@given(seed=integers(0, 2**31), target=sampled_from([X86, Target.parse("x86-64-v4")]))
def test_vectors_have_as_many_lanes_as_the_model_assumes(seed: int, target: Target) -> None:
    rng = np.random.default_rng(seed)
    read, made = (DTYPES[int(n)] for n in rng.integers(len(DTYPES), size=2))
    x, k = placeholder((24, 40), read, name="X"), reduce_axis(24, name="k")
    y = compute((40, 24), lambda i, j: x[j, i].astype(made) * 2, name="Y")
    z = compute((24,), lambda i: ap.max(y[k, i], axis=k), name="Z")
    sketch = SketchSampler(Task(ComputeDAG([z, y]), target, 2)).draw_one(rng)
    table = sketch.sample(8, rng)
    table = table[sketch.valid(table)][:1]
    assume(len(table))
    for row in table:
        lowered = lower(sketch.resolve(row))
        lanes, found = loop_lanes(lowered.run.body, target), statements(lowered.run.body)
        machine = MachineModel.of(target)
        for view in view_nest(sketch.space.nest(table), 1):
            op = view.leaf.op
            updates = [s for s in found[op.name] if s.updates or not op.reduce_axes]
            used = {lanes[loop] for s in updates for loop in s.vectors}
            assert used <= {tile_of(view, machine).lanes}, f"{op.name} of {read} as {made}"


CODE_FACTOR = 2
"""How far the code of a stage may be from its column, above the constant for a tree of lanes."""


@examples(60)
@given(seed=integers(0, 2**31), preset=sampled_from([CPU, ANSOR_CPU]))
def test_code_is_about_as_long_as_its_table_says(seed: int, preset: Preset) -> None:
    rng = np.random.default_rng(seed)
    sketch = SketchSampler(Task(random_definition(rng), X86, 4), preset).draw_one(rng)
    table = sketch.sample(32, rng)
    table = table[sketch.valid(table)][:2]
    assume(len(table))
    bounds = Bounds(sketch.state, sketch.space.values(table))
    for row in range(len(table)):
        try:
            lowered = lower(sketch.resolve(table[row]))
        except ScheduleError:
            reject()  # a trial that fails with a reason
        for name, made in statements(lowered.run.body).items():
            stage = sketch.state.stage(name)
            lanes = lanes_of(bounds.op(name), X86)
            sizes = [written_out(s, lanes, CALL_INSTRUCTIONS, MOST_VECTORS) for s in made]
            found = max(sizes) if stage.lanes is None else sum(sizes)
            predicted = at(instructions(bounds, stage, X86), row)
            least = 0 if stage.lanes is None else TREE_INSTRUCTIONS
            assert predicted <= CODE_FACTOR * max(found, least), name
            assert found <= CODE_FACTOR * predicted, name


@examples(60)
@given(seed=integers(0, 2**31), preset=sampled_from([CUDA, ANSOR_CUDA]))
def test_blocks_take_the_shared_memory_that_their_table_says(seed: int, preset: Preset) -> None:
    rng = np.random.default_rng(seed)
    some = [*WORKLOADS.values(), *tensor_cores.LARGE.values()]
    drawn = ComputeDAG.of(some[int(rng.integers(len(some)))])
    dag = random_definition(rng) if rng.random() < 0.3 else drawn
    sketch = SketchSampler(Task(dag, tensor_cores.HOPPER, 1), preset).draw_one(rng)
    table = sketch.sample(64, rng)
    table = table[sketch.valid(table)][:2]
    assume(len(table))
    bounds = Bounds(sketch.state, sketch.space.values(table))
    columns = [shared_bytes(bounds, kernel) for kernel in kernels(sketch.state)]
    for row in range(len(table)):
        state = sketch.resolve(table[row])
        plan = emit_cuda(lower(state).run, tensor_cores.HOPPER, "kernel").plan
        found = [launch.shared_bytes for launch in plan.launches if launch.shared_bytes]
        wanted = [at(column, row) for column in columns]
        assert found == [size for size in wanted if size], state.text()
