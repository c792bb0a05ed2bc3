"""Stages held in fragments, rows reduced in quads, and reductions carried by another one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Load, walk
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp, compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.carry import CarryStep
from ansorpy.schedule.steps.place import ComputeAtStep
from tests.rules.asking import CUDA
from tests.rules.attentions import attend

MMA = "mma.m16n8k16.float32.float16.float16"


def products() -> State:
    """Attention whose products are in fragments, with the second one tiled."""
    state = State.initial(attend(1, 32, 48, 16, 8))
    state = state.mma("scores", MMA, "i", "j", "e").compute_inline("scores")
    return state.mma("mixed", MMA, "i", "o", "jm").compute_inline("mixed")


def tiled() -> State:
    state, _ = (
        products()
        .hold("raised", MMA)
        .quads("top")
        .quads("total")
        .split("mixed.warp", "jm", (1, 2, 16), tail="whole")
    )
    return state


MEMBERS = ("top.lane", "top.quad", "total.lane")


def test_quads_reduce_what_each_lane_holds_and_then_combine_it() -> None:
    state = products().quads("top")
    lane, quad = (state.stage(f"top.{part}").compute for part in ("lane", "quad"))
    assert lane.shape == quad.shape == (1, 32, 4)
    assert [axis.extent for axis in lane.reduce_axes] == [3, 2, 2]
    raised = state.stage("raised").compute
    (read,) = [e for e in walk(raised.body) if isinstance(e, Load) and e.source is quad]
    assert text(read.indices[-1]) == "j // 2 % 4"


def test_sums_of_16_bits_are_products_with_ones() -> None:
    state = products().ones("total")
    columns, one = (state.stage(f"total.{part}").compute for part in ("columns", "one"))
    assert columns.shape == (1, 32, 8) and one.shape == (48, 8) and text(one.body) == "1.0"
    (read,) = [
        e for e in walk(state.stage("out").compute.body)
        if isinstance(e, Load) and e.source is columns
    ]  # fmt: skip
    assert text(read.indices[-1]) == "o % 8"


def test_new_axes_differ_from_those_of_the_definition() -> None:
    given = placeholder((4, 16, 32), "float16", name="given")
    c = reduce_axis(32, name="c")
    total = compute((4, 16), lambda x, y: b.sum(b.widened(given[x, y, c]), axis=c), name="total")
    out = compute((4, 16), lambda i, j: total[i, j] * 2.0, name="out")
    state = State.initial([given, out])
    for made in (state.quads("total"), state.ones("total")):
        for stage in made.stages:
            names = [it.name for it in stage.iters]
            assert len(set(names)) == len(names), (stage.name, names)


def test_columns_beyond_the_row_do_not_count() -> None:
    state = State.initial(attend(1, 16, 21, 16, 8)).quads("total")
    body = text(state.stage("total.lane").compute.body)
    assert re.search(r"select\(.* < 21, .*, 0\.0\)", body), body


def test_members_are_split_like_the_sum_that_carries_them() -> None:
    state = tiled().carry("mixed.warp", "jm.1", MEMBERS, "top.quad")
    assert [it.name for it in state.stage("total.lane").iters][3:6] == [
        "js.t.0",
        "js.t.1",
        "js.t.2",
    ]
    carried = state.stage("top.lane").carried
    assert carried is not None and carried.loops == (("jt.t.0", "jm.0"), ("jt.t.1", "jm.1"))
    scales = {s.name: s.rescaled.scale for s in state.stages if s.rescaled is not None}
    assert scales == {"mixed.warp": 0.25, "total.lane": 0.25}
    names = [stage.name for stage in state.stages]
    assert names.index("total.lane") < names.index("mixed.warp") < names.index("total.quad")


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "hold a sum": (lambda: products().hold("total", MMA), "a stage that reduces"),
    "hold an output": (lambda: products().hold("out", MMA), "an output"),
    "hold like no product": (lambda: products().hold("raised", "vnni.dot_16x4"), "no fragments"),
    "quads of a product": (lambda: products().quads("raised"), "not an untiled sum or maximum"),
    "ones for a maximum": (lambda: products().ones("top"), "not a sum of 16-bit floats"),
    "ones for wide values": (
        lambda: State.initial(attend(1, 16, 16, 16, 8, narrow=False)).ones("total"),
        "not a sum of 16-bit floats",
    ),
    "carry in a loop over rows": (
        lambda: tiled().carry("mixed.warp", "i", MEMBERS, "top.quad"), "not a loop of a sum",
    ),
    "carry a maximum that is no member": (
        lambda: tiled().carry("mixed.warp", "jm.1", MEMBERS[:1], "top.quad"),
        "not a member that one other stage reads",
    ),
    "carry what is no maximum": (
        lambda: tiled().carry("mixed.warp", "jm.1", MEMBERS, "total.lane"),
        "is not exp(x - total.lane)",
    ),
    "carry what is no reduction in quads": (
        lambda: tiled().carry("mixed.warp", "jm.1", (*MEMBERS, "out"), "top.quad"),
        "not an untiled reduction in fragments",
    ),
    "carry in an unsplit loop": (
        lambda: products().hold("raised", MMA).quads("top").quads("total").carry(
            "mixed.warp", "jm", MEMBERS, "top.quad"
        ),
        'has no split of "jm"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_carried(name: str) -> None:
    step, told = REFUSED[name]
    with pytest.raises(ScheduleError, match=re.escape(told)):
        step()


def scheduled(rng: np.random.Generator) -> State:
    """A whole schedule of the rule for attention in warps."""
    tensors = attend(1, 32, 100, 16, 8)
    sketch = SketchSampler(Task(ComputeDAG.of(tensors), CUDA, 1)).place(0, rng)
    table = sketch.sample(64, rng)
    return sketch.resolve(table[sketch.valid(table)][0])


def scheduled_with_quads(rng: np.random.Generator) -> State:
    """The same for sums of float32, which tensor cores would round."""
    tensors = attend(1, 32, 100, 16, 8, narrow=False)
    sketch = SketchSampler(Task(ComputeDAG.of(tensors), CUDA, 1)).place(0, rng)
    table = sketch.sample(64, rng)
    return sketch.resolve(table[sketch.valid(table)][0])


def moved(state: State, places: dict[str, tuple[str, str]]) -> State:
    """*state* with some stages computed elsewhere."""
    steps = [
        replace(step, target=places[step.stage][0], iter=places[step.stage][1])
        if isinstance(step, ComputeAtStep) and step.stage in places else step
        for step in state.history
    ]  # fmt: skip
    return State.replay(state.definition, steps)


def test_final_values_are_not_read_inside_the_loop(rng: np.random.Generator) -> None:
    with pytest.raises(ScheduleError, match="at a loop of one of its readers"):
        moved(scheduled_with_quads(rng), {"total.quad": ("mixed.warp", "jm.1")})


def test_values_so_far_are_read_inside_the_loop(rng: np.random.Generator) -> None:
    state = scheduled(rng)
    host = state.stage("mixed.warp").attach
    assert host is not None
    place = (host.stage, host.iter)
    state = moved(state, {"scores.warp": place, "raised": place, "k.shared": place})
    with pytest.raises(ScheduleError, match='reads "top.quad" once, not in each iteration'):
        state.check()


def test_the_sum_before_is_kept_for_one_iteration(rng: np.random.Generator) -> None:
    program = text(lower(scheduled(rng)).run)
    assert program.count("alloc top.quad.before: float32[1, ") == 1
    assert re.search(
        r"mixed\.warp\[.*\] = mixed\.warp\[.*\] \* exp\(\(max\(top\.quad\.before", program
    )


def test_the_step_is_printed_as_a_call() -> None:
    step = CarryStep("mixed.warp", "jm.1", MEMBERS, "top.quad")
    assert step.call() == (
        "state = state.carry('mixed.warp', 'jm.1', ['top.lane', 'top.quad', 'total.lane'], "
        "'top.quad')"
    )


def test_operators_read_what_they_did() -> None:
    """Functionally, a carried state is still the definition: only the exponents' start differs."""
    before, after = tiled(), tiled().carry("mixed.warp", "jm.1", MEMBERS, "top.quad")
    for stage in before.stages:
        other = after.stage(stage.name).op
        if isinstance(other, ComputeOp) and stage.name not in ("raised", "out"):
            assert text(other.body) == text(stage.compute.body)
