"""A primitive refuses a stage that it cannot act on; the error does not wait for lowering."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir.builders import exp, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import Scope
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.stage import Attach
from ansorpy.schedule.state import StageRef, State


def two_outputs() -> ComputeDAG:
    """``C`` is an output that the output ``D`` reads; ``R`` sums ``B``."""
    a = placeholder((6, 4), name="A")
    b = compute((6, 4), lambda i, j: a[i, j] + 1.0, name="B")
    c = compute((6, 4), lambda i, j: b[i, j] * 2.0, name="C")
    k = reduce_axis(4, name="k")
    r = compute((6,), lambda i: sum(b[i, k], axis=k), name="R")
    d = compute((6, 4), lambda i, j: exp(c[i, j]) + r[i], name="D")
    return ComputeDAG.of([a, c, d])


PRIMITIVES: dict[str, Callable[[State, StageRef], object]] = {
    "split": lambda s, x: s.split(x, "i", (2,)),
    "follow_split": lambda s, x: s.split("B", "i", (2,))[0].follow_split(x, "i", ("B", "i"), 1),
    "follow_fused_split": lambda s, x: s.split("B", "i", (2,))[0].follow_fused_split(
        x, "i", [("B", "i")], 0
    ),
    "split_lanes": lambda s, x: s.split_lanes(x, "k", 4),
    "fuse": lambda s, x: s.fuse(x, ["i", "j"]),
    "reorder": lambda s, x: s.reorder(x, []),
    "parallel": lambda s, x: s.parallel(x, []),
    "vectorize": lambda s, x: s.vectorize(x, []),
    "unroll": lambda s, x: s.unroll(x, "i"),
    "pragma_unroll": lambda s, x: s.pragma_unroll(x, 16),
    "bind": lambda s, x: s.bind(x, "i", "blockIdx.x"),
    "compute_at": lambda s, x: s.compute_at(x, "D", "i"),
    "compute_at, target": lambda s, x: s.compute_at("B", x, "i"),
    "reverse_compute_at": lambda s, x: s.reverse_compute_at(x, "B", "i"),
    "reverse_compute_at, target": lambda s, x: s.reverse_compute_at("C", x, "i"),
    "compute_inline": lambda s, x: s.compute_inline(x),
    "compute_root": lambda s, x: s.compute_root(x),
    "cache_write": lambda s, x: s.cache_write(x, "local"),
    "rfactor": lambda s, x: s.rfactor(x, "k"),
    "dot": lambda s, x: s.dot(x, "dot_u8s8"),
    "mma": lambda s, x: s.mma(x, "mma.m16n8k16.f16", "i", "j", "k"),
    "hold": lambda s, x: s.hold(x, "mma.m16n8k16.f16"),
    "quads": lambda s, x: s.quads(x),
    "ones": lambda s, x: s.ones(x),
    "carry": lambda s, x: s.carry(x, "k", [], "R"),
    "pack": lambda s, x: s.pack(x, "B"),
    "tensorize": lambda s, x: s.tensorize(x, "i", "vnni"),
    "pad": lambda s, x: s.pad(x, 1),
    "bulk": lambda s, x: s.bulk(x),
    "pipeline": lambda s, x: s.pipeline(x, "k", 2),
    "set_scope": lambda s, x: s.set_scope(x, "local"),
    "set_kernel_style": lambda s, x: s.set_kernel_style(x, "rows"),
}
ALSO_OF_INPUTS: dict[str, Callable[[State, StageRef], object]] = {
    "cache_read": lambda s, x: s.cache_read(x, "local", ["B"]),
    "pack, tensor": lambda s, x: s.pack("D", x),
    "stage": lambda s, x: s.stage(x),
    "index": lambda s, x: s.index(x),
}


def test_every_primitive_is_asked() -> None:
    public = {
        name
        for name, f in vars(State).items()
        if not name.startswith("_") and "stage" in getattr(f, "__annotations__", {})
    }
    asked = {name.split(",")[0] for name in (*PRIMITIVES, *ALSO_OF_INPUTS)}
    assert public - asked == {"move_attached", "text"}


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize("ref", ["A", 0])
def test_a_placeholder_has_nothing_to_schedule(name: str, ref: StageRef) -> None:
    with pytest.raises(ScheduleError, match='"A" is a placeholder') as caught:
        PRIMITIVES[name](State.initial(two_outputs()), ref)
    assert name.split(",")[0] in str(caught.value) or name in ("unroll", "bind")


@pytest.mark.parametrize("name", [*PRIMITIVES, *ALSO_OF_INPUTS])
@pytest.mark.parametrize(
    ("ref", "message"),
    [("E", 'no stage "E"'), (99, "no stage number 99"), (-1, "no stage number -1"),
     (5, "no stage number 5")],
)  # fmt: skip
def test_a_stage_that_is_not_there_is_named(name: str, ref: StageRef, message: str) -> None:
    with pytest.raises(ScheduleError, match=message) as caught:
        (PRIMITIVES | ALSO_OF_INPUTS)[name](State.initial(two_outputs()), ref)
    assert "the stages are A, B, C, R, D" in str(caught.value)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.compute_at("C", "D", "i"), "an output must be computed as a whole"),
        (lambda s: s.compute_inline("C"), "an output must be stored"),
        (lambda s: s.set_scope("C", "local"), "an output lives in the caller's memory"),
        (lambda s: s.reverse_compute_at("D", "C", "i"), "an output must be computed as a whole"),
        (lambda s: s.reverse_compute_at("R", "B", "i"), "element by element"),
    ],
)
def test_an_output_that_others_read_is_stored_whole(
    act: Callable[[State], State], message: str
) -> None:
    with pytest.raises(ScheduleError, match=message):
        act(State.initial(two_outputs()))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.vectorize("D", []), "no loop is named"),
        (lambda s: s.parallel("D", []), "no loop is named"),
        (lambda s: s.fuse("D", []), "two loops or more"),
        (lambda s: s.split("D", "i", ()), "no factor is named"),
        (
            lambda s: s.split("D", "i", (None,), max_innermost=0),
            "no factor is at most 0",
        ),
        (lambda s: s.follow_fused_split("D", "i", [], 0), "no split to follow is named"),
        (lambda s: s.cache_read("A", "local", []), "no reader is named"),
        (lambda s: s.parallel("D", ["i"], count=2), "the count is 2, but the number of loops is 1"),
        (lambda s: s.vectorize("D", ["j"], count=-1), "-1 is too small"),
        (lambda s: s.parallel("D", ["i"], count=OneOf((1, 2))), "the count is 2, but"),
        (lambda s: s.pragma_unroll("D", -1), "-1 is too small"),
        (lambda s: s.split("D", "i", (OneOf((4, 0)), 2)), "0 is too small"),
        (lambda s: s.rfactor("R", "k", -1), "none of number -1"),
        (lambda s: s.rfactor("R", "k", 2), "none of number 2"),
        (lambda s: s.split("R", "k", (None, 2))[0].rfactor("R", "k.2"), "a reduce loop is open"),
        (lambda s: s.fuse("D", ["i", "j"], together=0), "strips of 0 iterations are none"),
        (lambda s: s.fuse("D", "i"), "loops are given as a list"),
        (lambda s: s.fuse("D", s.stage("D").iters[0]), "loops are given as a list"),
        (lambda s: s.split("D", "i", (4.0,)), "4.0 is not a whole number"),
        (lambda s: s.split("D", "i", "48"), "'4' is not a whole number"),
        (lambda s: s.split("B", "i", (None,))[0].resolve({"B.i/1": 2.5}), "2.5 is not a whole"),
        (lambda s: s.parallel("D", ["i"], count="1"), "'1' is not a whole number"),
        (lambda s: s.pragma_unroll("D", OneOf(())), "no numbers to choose from"),
        (lambda s: s.pragma_unroll("D", OneOf((0, 1.5))), "no numbers"),  # type: ignore[arg-type]
        (
            lambda s: s.split("B", "i", (2,))[0].follow_fused_split("D", "i", [("B", "i")], -1),
            "level -1 is out of range",
        ),
    ],
)
def test_lists_that_are_empty_and_numbers_out_of_range_are_refused(
    act: Callable[[State], object], message: str
) -> None:
    with pytest.raises(ScheduleError, match=message):
        act(State.initial(two_outputs()))


def test_a_tail_has_one_of_the_names() -> None:
    with pytest.raises(ScheduleError, match="'gaurd' is not a tail") as caught:
        State.initial(two_outputs()).split("D", "i", (4,), tail="gaurd")  # type: ignore[arg-type]
    assert "guard, cover, whole, shift, even, peel" in str(caught.value)


def test_a_reduction_does_not_follow_its_producer() -> None:
    a, w = placeholder((6,), name="A"), placeholder((4,), name="W")
    b = compute((6,), lambda i: a[i] + 1.0, name="B")
    k = reduce_axis(4, name="k")
    r = compute((6,), lambda i: sum(b[i] * w[k], axis=k), name="R")
    with pytest.raises(ScheduleError, match="must have unchanged loops, and no reduction"):
        State.initial([a, w, r]).reverse_compute_at("R", "B", "i")


def test_no_loops_to_reorder_are_no_change() -> None:
    state = State.initial(two_outputs())
    assert state.reorder("D", []).text() == state.text()
    lower(state.reorder("D", []))


def of_one_product() -> State:
    a, w = placeholder((6, 4), name="A"), placeholder((4, 6), name="W")
    k = reduce_axis(4, name="k")
    c = compute((6, 6), lambda i, j: sum(a[i, k] * w[k, j], axis=k), name="C")
    return State.initial([a, w, compute((6, 6), lambda i, j: c[i, j] * 2.0, name="D")])


SAID: dict[str, tuple[str, Callable[[State], State]]] = {
    "parallel": ("i", lambda s: s.parallel("C", ["i"])),
    "vectorized": ("j", lambda s: s.reorder("C", ["i", "k", "j"]).vectorize("C", ["j"])),
    "unrolled": ("k", lambda s: s.unroll("C", "k")),
    "bound to blockIdx.x": ("i", lambda s: s.bind("C", "i", "blockIdx.x")),
    "the lanes of a reduction": ("k.1", lambda s: s.split_lanes("C", "k", 2)[0]),
    "tensorized": ("j", lambda s: s.tensorize("C", "j", "vnni")),
    "pipelined": ("k", lambda s: s.pipeline("C", "k", 2)),
}


@pytest.mark.parametrize("how", SAID)
def test_a_loop_of_which_is_said_how_it_runs_is_not_replaced(how: str) -> None:
    loop, said = SAID[how]
    state = said(of_one_product())
    names = [it.name for it in state.stage("C").iters]
    at = max(names.index(loop), 1)
    replacements: list[Callable[[], object]] = [
        lambda: state.split("C", loop, (2,)),
        lambda: state.split("D", "i", (2,))[0].follow_split("C", loop, ("D", "i"), 1),
        lambda: state.split("D", "i", (2,))[0].follow_fused_split("C", loop, [("D", "i")], 0),
    ]
    if state.stage("C").iter(names[at - 1]).kind is state.stage("C").iter(names[at]).kind:
        replacements.append(lambda: state.fuse("C", names[at - 1 : at + 1]))
    for replacement in replacements:
        with pytest.raises(
            ScheduleError, match=f'loop "{loop}" is {how}, but the loops that replace it'
        ):
            replacement()


ARRANGED: dict[str, Callable[[State], State]] = {
    **{how: said for how, (_, said) in SAID.items()},
    "reordered": lambda s: s.reorder("C", ["j", "i"]),
    "to be unrolled": lambda s: s.pragma_unroll("C", 16),
    "split": lambda s: s.split("C", "i", (2,))[0],
}


@pytest.mark.parametrize("how", ARRANGED)
def test_stages_that_start_anew_do_not_lose_how_their_loops_run(how: str) -> None:
    state = ARRANGED[how](of_one_product())
    with pytest.raises(ScheduleError, match="loops have not been changed"):
        state.cache_write("C", "local")
    reduction = next(it for it in state.stage("C").iters if it.kind is AxisKind.REDUCE)
    with pytest.raises(ScheduleError, match="only reduce loops may be split or fused"):
        state.rfactor("C", reduction)


MOVED: dict[str, Callable[[State], State]] = {
    "parallel": lambda s: s.parallel("D", ["i"]),
    "reordered": lambda s: s.reorder("D", ["j", "i"]),
    "to be unrolled": lambda s: s.pragma_unroll("D", 16),
    "split": lambda s: s.split("D", "i", (2,))[0],
    "around another": lambda s: s.compute_at("C", "D", "j"),
}


@pytest.mark.parametrize("how", MOVED)
def test_a_consumer_that_takes_other_loops_does_not_lose_how_its_own_run(how: str) -> None:
    state, (outer, _) = MOVED[how](of_one_product()).split("C", "i", (2,))
    with pytest.raises(ScheduleError, match="must have unchanged loops"):
        state.reverse_compute_at("D", "C", outer)


@pytest.mark.parametrize(
    "derive",
    [lambda s: s.cache_write("C", "local"), lambda s: s.rfactor("C", "k")],
    ids=["cache_write", "rfactor"],
)
def test_a_result_stays_where_it_is_kept(derive: Callable[[State], tuple[State, str]]) -> None:
    state, made = derive(of_one_product().compute_at("C", "D", "i").set_scope("C", "local"))
    assert state.stage("C").scope is Scope.LOCAL
    assert state.stage("C").attach == Attach("D", "i")
    assert state.stage(made).attach is None
