"""``State.check`` says which step made a schedule illegal, and why; legal ones pass."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.bounds.spans import Span
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.size import size_min
from tests import workloads


def two_readers() -> State:
    """``A`` -> ``B``, which both ``C`` (its neighbours) and ``D`` read."""
    a = placeholder((13,), name="A")
    double = compute((13,), lambda i: a[i] * 2.0, name="B")
    near = compute((11,), lambda i: double[i] + double[i + 2], name="C")
    return State.initial([a, compute((11,), lambda i: near[i] + double[i], name="D")])


def product(n: int = 13, m: int = 8, k: int = 6) -> State:
    return State.initial(workloads.matmul(n, m, k))


def chain() -> State:
    """``B`` before a product ``C``, and ``D`` after it, all of 8 rows."""
    a, w, k = placeholder((8, 6), name="A"), placeholder((6, 5), name="W"), reduce_axis(6, name="k")
    doubled = compute((8, 6), lambda i, j: a[i, j] * 2.0, name="B")
    summed = compute((8, 5), lambda i, j: b.sum(doubled[i, k] * w[k, j], k), name="C")
    return State.initial([a, w, compute((8, 5), lambda i, j: summed[i, j] + 1.0, name="D")])


def refusal(state: State) -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        state.check()
    return caught.value


def test_the_default_schedule_is_legal() -> None:
    assert product().check().reads == 0, "nothing is computed in a loop of another stage"


def test_what_is_proved_is_counted() -> None:
    state, (outer, _) = chain().split("D", "i", (3,))
    checked = state.compute_at("C", "D", outer).compute_at("B", "C", "i").check()
    assert checked.reads == 2 and not checked.undecided
    assert str(checked) == "legal; reads proved to be of elements computed in the same loop: 2"


def test_a_stage_that_is_read_outside_of_its_loop() -> None:
    state = two_readers().compute_at("B", "C", "i").split("D", "i", (4,))[0]
    error = refusal(state)
    assert error.step == "state = state.compute_at('B', 'C', 'i')", "not the split after it"
    assert str(error) == (
        "state = state.compute_at('B', 'C', 'i'): "
        '"B" is computed inside a loop of "C", but "D", which reads it, is not\n'
        'in stage "B", before this step:\n'
        "for i in 0..13\n"
        "  B[i] = ...\n"
        'hint: compute "B" at a loop around all its readers, or at the root'
    )


def test_a_later_step_may_make_an_early_one_legal() -> None:
    early = two_readers().compute_at("B", "D", "i")
    assert "which reads it" in refusal(early).message
    assert early.compute_at("C", "D", "i").check().reads == 4


def test_a_step_may_break_what_an_earlier_one_made() -> None:
    state = two_readers().compute_at("B", "D", "i").compute_at("C", "D", "i")
    assert refusal(state.compute_root("C")).step == "state = state.compute_root('C')"


def test_a_reduction_is_not_reordered_outside_of_overlapping_tiles() -> None:
    state, (outer, inner) = product().split("C", "i", (5,), tail="shift")
    assert state.check()
    error = refusal(state.reorder("C", ["k", outer, inner, "j"]))
    assert "reorder" in str(error.step)
    assert error.message == (
        'tiles of "i" overlap, and several iterations inside "k" add the same terms'
    )
    divided, (outer, inner) = product(n=15).split("C", "i", (5,), tail="shift")
    assert divided.reorder("C", ["k", outer, inner, "j"]).check(), "no tile overlaps"


@pytest.mark.parametrize("how", ["parallel", "fused", "bound"])
def test_threads_do_not_add_to_the_sums_of_overlapping_tiles(how: str) -> None:
    state, (outer, inner) = product().split("C", "i", (5,), tail="shift")
    if how == "parallel":
        state = state.parallel("C", [outer])
    elif how == "bound":
        state = state.bind("C", outer, "blockIdx.x")
    else:
        state, both = state.reorder("C", [outer, "j", inner]).fuse("C", [outer, "j"])
        state = state.parallel("C", [both])
    error = refusal(state)
    assert error.message == 'tiles of "i" overlap, and several threads add the same terms'
    assert how != "parallel" or "parallel" in str(error.step)


def test_lanes_do_not_add_to_the_sums_of_overlapping_tiles() -> None:
    state, (outer, inner) = product().split("C", "i", (5,), tail="shift")
    within = state.reorder("C", [outer, "j", "k", inner]).vectorize("C", [inner])
    assert within.check() and within.reorder("C", [outer, inner, "j", "k"]).check()
    across = state.reorder("C", ["j", "k", inner, outer]).vectorize("C", [outer])
    assert refusal(across.reorder("C", [outer, "j", "k", inner])).message == (
        'tiles of "i" overlap, and several iterations inside "k" add the same terms'
    )


def test_threads_may_repeat_what_is_no_sum() -> None:
    a = placeholder((13,), name="A")
    state = State.initial([a, compute((13,), lambda i: a[i] * 2.0, name="B")])
    state, (outer, _) = state.split("B", "i", (5,), tail="shift")
    assert state.parallel("B", [outer]).check()


@pytest.mark.parametrize("index", ["blockIdx.x", "threadIdx.x"])
def test_threads_of_a_kernel_do_not_write_the_overlap_of_tiles(index: str) -> None:
    a = placeholder((13,), name="A")
    state = State.initial([a, compute((13,), lambda i: a[i] * 2.0, name="B")])
    split, (outer, inner) = state.split("B", "i", (5,), tail="shift")
    error = refusal(split.bind("B", outer, index))
    assert "bind" in str(error.step)
    assert error.message == ('tiles of "i" overlap, and several threads write the same elements')
    guarded, (outer, _) = state.split("B", "i", (5,), tail="guard")
    assert guarded.bind("B", outer, index).check(), "no tile overlaps"


def test_threads_that_share_memory_need_one_box() -> None:
    state = chain().bind("D", "i", "threadIdx.x").compute_at("C", "D", "i")
    assert state.check(), "each thread has its own row, in registers"
    error = refusal(state.bind("C", "j", "threadIdx.y"))
    assert error.message == (
        'the iterations of loop "i" run at the same time and share the memory of "C", '
        "but each needs a part of its own there"
    )
    every = refusal(state.set_scope("C", "shared"))
    assert every.message == 'every thread along threadIdx.x writes all of "C" in shared memory'
    assert state.set_scope("C", "shared").bind("C", "i", "threadIdx.x").check()


def test_parallel_iterations_do_not_share_a_workspace() -> None:
    state = chain().parallel("D", ["i"]).compute_at("C", "D", "i")
    assert state.check()
    assert "share the memory" in refusal(state.set_scope("C", "workspace")).message


def test_kernels_are_not_launched_in_loops() -> None:
    error = refusal(chain().bind("D", "j", "blockIdx.x"))
    assert error.message == 'a kernel would be launched in every iteration of "i"'
    assert error.step == "state = state.bind('D', 'j', 'blockIdx.x')"


def test_shared_memory_is_in_kernels_only() -> None:
    error = refusal(chain().compute_at("C", "D", "i").set_scope("C", "shared"))
    assert error.message == '"C" is kept in shared memory outside a GPU kernel'


def test_blocks_read_what_they_computed() -> None:
    state = chain().bind("D", "i", "threadIdx.x").compute_at("C", "D", "i")
    error = refusal(state.bind("D", "j", "blockIdx.x"))
    assert error.message == (
        'loop "j" of "D" is bound to blockIdx.x, but "C", which its blocks read, '
        "is computed outside it"
    )
    state = chain().bind("D", "i", "blockIdx.x").compute_at("B", "C", "i")
    state = state.compute_at("C", "D", "i").bind("C", "j", "blockIdx.y")
    assert "but every block needs all of" in refusal(state).message


def test_two_loops_of_a_stage_need_two_indices() -> None:
    error = refusal(chain().bind("D", "i", "threadIdx.x").bind("D", "j", "threadIdx.x"))
    assert error.message == (
        'loops "i" and "j" are bound to one index, threadIdx.x, so they advance together'
    )


def test_what_lowering_refuses_is_refused() -> None:
    state, _ = chain().split("D", "i", (5,), tail="even")
    assert "tiles of 5 and 4 elements exceed the 8 iterations" in refusal(state).message


def test_no_step_is_to_blame_for_a_definition_that_reads_outside() -> None:
    a = placeholder((4,), name="A")
    state = State.initial([a, compute((4,), lambda i: a[i + 100], name="B")])
    for steps in (state, state.split("B", "i", (2,))[0]):
        error = refusal(steps)
        assert error.step is None and "A" in error.message


def test_open_decisions_have_no_answer() -> None:
    state, _ = chain().split("D", "i", (None,))
    with pytest.raises(ScheduleError, match="decisions are still open: D.i"):
        state.check()
    state = chain().pragma_unroll("D", OneOf((0, 16)))
    with pytest.raises(ScheduleError, match="resolve"):
        state.check()


def test_gathers_need_the_whole_and_have_it() -> None:
    table, at = placeholder((6, 4), name="T"), placeholder((9,), "int64", name="at")
    rows = compute((6, 4), lambda i, j: table[i, j] * 2.0, name="R")
    taken = compute((9, 4), lambda i, j: rows[at[i], j], name="G")
    state = State.initial(ComputeDAG([taken])).compute_at("R", "G", "i")
    checked = state.check()
    assert checked.reads == 1 and not checked.undecided


def test_borders_and_quotients_are_proved() -> None:
    a = placeholder((8, 7), name="A")
    turned = compute((7, 8), lambda i, j: a[j, i] * 2.0, name="B")
    flat = compute((56,), lambda i: b.select(i < 50, turned[i // 8, i % 8], 0.0), name="F")
    state, (outer, _) = State.initial([a, flat]).split("F", "i", (12,))
    assert not state.compute_at("B", "F", outer).check().undecided


def test_boxes_that_miss_an_element_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound inference makes no such error, so the test plants it."""
    whole = Bounds.region

    def cut(self: Bounds, name: str) -> tuple[Span, ...]:
        return tuple(replace(s, extent=size_min(s.extent, 4)) for s in whole(self, name))

    state, (outer, _) = two_readers().split("D", "i", (3,))
    state = state.compute_at("B", "D", outer).compute_at("C", "D", outer)
    assert state.check()
    monkeypatch.setattr(Bounds, "region", cut)
    error = refusal(state)
    assert error.message == (
        '"C" reads "B" at i in dimension 0, beyond the 4 elements that are computed there'
    )


def test_primitives_and_lowering_do_without_isl() -> None:
    code = (
        "import sys; sys.modules['islpy'] = None\n"
        "from tests.schedule.test_legality import chain\n"
        "from ansorpy.schedule.lowering.program import lower\n"
        "from ansorpy.schedule.steps.records import steps_from_json, steps_to_json\n"
        "from ansorpy.schedule.state import State\n"
        "from ansorpy.measure.build import handlers\n"
        "from ansorpy.target import Target\n"
        "state, (outer, _) = chain().split('D', 'i', (3,), tail='shift')\n"
        "state = state.compute_at('C', 'D', outer).parallel('D', [outer]).compute_inline('B')\n"
        "steps = steps_from_json(steps_to_json(state.history))\n"
        "lowered = lower(State.replay(state.definition, steps))\n"
        "assert handlers.build_lowered(lowered, Target.host(), 'kernel')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
