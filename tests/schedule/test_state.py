"""Primitives: what they print, what they record, and what they refuse."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

from ansorpy.errors import ForeignFile, ScheduleError
from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, compute, placeholder, reduce_axis
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import STEP_CLASSES, steps_from_json, steps_to_json


def matmul_relu(n: int = 4, m: int = 8, k: int = 16) -> list[ComputeOp | PlaceholderOp]:
    a, w = placeholder((n, k), name="A"), placeholder((k, m), name="W", constant=True)
    r = reduce_axis(k, name="k")
    c = compute((n, m), lambda i, j: b.sum(a[i, r] * w[r, j], axis=r), name="C")
    d = compute((n, m), lambda i, j: b.maximum(c[i, j], 0.0), name="D")
    return [a, w, d]


def shows(state: State, expected: str) -> None:
    assert state.text() == textwrap.dedent(expected).strip("\n")


def tiled() -> State:
    """A matmul tiled with open sizes, computed at a tile of its relu."""
    state = State.initial(matmul_relu())
    tiles = {}
    for name, inner in (("i", (None, None, None)), ("j", (None, None, None)), ("k", (None,))):
        state, tiles[name] = state.split("C", name, inner)
    order = [t for level in (0, 1) for t in (tiles["i"][level], tiles["j"][level])]
    order += [tiles["k"][0], tiles["i"][2], tiles["j"][2], tiles["k"][1]]
    order += [tiles["i"][3], tiles["j"][3]]
    state = state.reorder("C", order)
    state, di = state.follow_split("D", "i", ("C", "i"), 2)
    state, dj = state.follow_split("D", "j", ("C", "j"), 2)
    state = state.reorder("D", [di[0], dj[0], di[1], dj[1], di[2], dj[2]])
    state = state.compute_at("C", "D", dj[1])
    state = state.parallel("D", [di[0], dj[0]], count=OneOf((1, 2)))
    state = state.vectorize("C", [tiles["j"][3]])
    state = state.pragma_unroll("C", OneOf((0, 16, 64)))
    return state.pack("C", "W")


def test_split_keeps_sizes_open_until_bound():
    state, iters = State.initial(matmul_relu()).split("C", "k", (None, 4))
    assert [it.extent for it in iters] == [None, None, 4]
    shows(
        state,
        """
        placeholder A
        placeholder W
        for i in 0..4
          for j in 0..8
            for k.0 in 0..?  # reduce
              for k.1 in 0..?  # reduce
                for k.2 in 0..4  # reduce
                  C[i, j] += ...
        for i in 0..4
          for j in 0..8
            D[i, j] = ...
        """,
    )
    bound = state.resolve({"C.k/1": 2})
    assert [it.extent for it in bound.stage("C").iters] == [4, 8, 2, 2, 4]
    assert not bound.is_open


def test_numbers_of_numpy_are_numbers():
    four: Any = np.int64(4)
    one: Any = np.uint8(1)
    state, _ = State.initial(matmul_relu()).split("C", "k", (None, four))
    state = state.parallel("D", ["i", "j"], count=one).pragma_unroll("C", four)
    assert str(state.resolve({"C.k/1": four}).history).splitlines() == [
        "state, _ = state.split('C', 'k', (4, 4))",
        "state = state.parallel('D', ['i', 'j'], count=1)",
        "state = state.pragma_unroll('C', max_step=4)",
    ]
    assert repr(OneOf(tuple(np.arange(1, 3)))) == "OneOf((1, 2))"


def test_factors_are_decided_together_or_each_as_a_choice():
    start = State.initial(matmul_relu())
    state, _ = start.split("C", "k", (OneOf((2, 3)), 2, OneOf((1, 4))))
    assert [(d.name, d.columns) for d in state.decisions] == [
        ("C.k/1", ("C.k/1",)), ("C.k/3", ("C.k/3",)),
    ]  # fmt: skip
    assert (
        str(state.history) == "state, _ = state.split('C', 'k', (OneOf((2, 3)), 2, OneOf((1, 4))))"
    )
    bound = state.resolve({"C.k/1": 3, "C.k/3": 4})
    assert [it.extent for it in bound.stage("C").iters[2:]] == [1, 2, 2, 4]
    assert bound.history == start.split("C", "k", (3, 2, 4))[0].history
    assert bound.history[0].numbers() == {"C.k/1": 3, "C.k/2": 2, "C.k/3": 4}
    open_loop = state.stage("C").iters[2]
    assert start.split("C", "k", (OneOf((2, 3)),))[0].split("C", "k.0", (OneOf((1, 2)),))
    with pytest.raises(ScheduleError, match="the loop's own extent is open"):
        state.split("C", open_loop, (None,))
    with pytest.raises(ScheduleError, match="None cannot be mixed with a OneOf"):
        start.split("C", "k", (None, OneOf((2, 3))))


def test_history_is_python_that_rebuilds_the_state():
    state = tiled()
    scope = {"state": State.initial(matmul_relu()), "OneOf": OneOf}
    exec(str(state.history), scope)  # noqa: S102 - our own printed steps
    again = scope["state"]
    assert isinstance(again, State)
    assert again.text() == state.text()
    assert str(again.history) == str(state.history)


def test_records_round_trip_open_and_bound_states():
    state = tiled()
    space = Space(state)
    row = [d for decision in space.decisions for d in decision.domain.rows[-1]]
    for each in (state, space.resolve(row)):
        text = steps_to_json(each.history)
        again = State.replay(ComputeDAG.of(matmul_relu()), steps_from_json(text))
        assert again.text() == each.text()
        assert steps_to_json(again.history) == text


def test_every_step_class_has_its_own_kind_in_records():
    kinds = [cls.__dataclass_fields__["kind"].default for cls in STEP_CLASSES]
    assert len(set(kinds)) == len(STEP_CLASSES)


def test_damaged_records_are_refused_with_the_place():
    with pytest.raises(ForeignFile, match="not a recorded schedule: step 0"):
        steps_from_json('[{"kind": "split", "stage": "C"}]')
    with pytest.raises(ForeignFile, match="not a recorded schedule"):
        steps_from_json('{"a": ')


def test_fuse_refuses_to_mix_space_and_reduce():
    state = State.initial(matmul_relu())
    with pytest.raises(ScheduleError, match="space and reduce iterators cannot share one loop"):
        state.fuse("C", ["j", "k"])


def test_fuse_refuses_loops_apart():
    with pytest.raises(ScheduleError, match="only neighbouring loops"):
        State.initial(matmul_relu()).fuse("C", ["j", "i"])


def test_unknown_names_are_answered_with_the_known_ones():
    state = State.initial(matmul_relu())
    with pytest.raises(ScheduleError, match='there is no stage "E"'):
        state.split("E", "i", (2,))
    with pytest.raises(ScheduleError, match='stage "C" has no loop "x"'):
        state.split("C", "x", (2,))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.split("C", "i", (0,)), "0 is too small; the least number allowed is 1"),
        (lambda s: s.parallel("C", ["k"]), "a reduce iterator cannot run in parallel"),
        (lambda s: s.vectorize("C", ["k"]), "a reduce iterator cannot be vectorised"),
        (lambda s: s.vectorize("C", ["i"]), "only the innermost loops"),
        (lambda s: s.compute_at("D", "C", "i"), '"C" does not read "D"'),
        (lambda s: s.compute_inline("C"), "a reduction would be recomputed"),
        (lambda s: s.compute_inline("D"), "an output must be stored"),
        (lambda s: s.compute_inline("A"), '"A" is a placeholder'),
        (lambda s: s.pack("C", "A"), "is not a constant that"),
        (lambda s: s.rfactor("C", "i"), "it is not a reduce loop"),
        (lambda s: s.rfactor("A", "i"), "has no loop"),
        (lambda s: s.split("C", "i", (2,))[0].rfactor("C", "k"), "only reduce loops may be"),
        (lambda s: s.parallel("C", ["i"]).rfactor("C", "k"), "only reduce loops may be"),
        (lambda s: s.bind("C", "i", "blockidx"), '"blockidx" is not a GPU index'),
        (lambda s: s.bind("C", "i", "parallel"), '"parallel" is not a GPU index'),
        (lambda s: s.cache_write("C", "cache"), '"cache" is not a memory scope'),
        (lambda s: s.cache_read("A", "cache", ["C"]), '"cache" is not a memory scope'),
        (lambda s: s.set_scope("C", "global"), '"global" is not a memory scope'),
        (lambda s: s.set_kernel_style("C", "columns"), '"columns" is not a kernel style'),
        (lambda s: s.cache_read("A", "shared", ["D"]), '"D" does not read "A"'),
        (lambda s: s.cache_read("A", "local", ["C"], (1, 1)), "each of the 2 dimensions once"),
        (lambda s: s.cache_read("A", "local", ["C"], loads=(1,)), 'not loads of "A" by one'),
        (lambda s: s.bind("C", "k", "blockIdx.x"), "a reduce iterator cannot be bound"),
        (lambda s: s.set_scope("D", "local"), "an output lives in the caller's memory"),
        (lambda s: s.reorder("C", ["i", "i"]), "a loop is named twice"),
        (lambda s: s.follow_split("D", "i", ("C", "i"), 1), "has no split"),
        (lambda s: s.split("C", "i", 4), r"(?s)factors are a tuple, not 4.*pass \(4,\)"),
        (lambda s: s.parallel("C", "i"), r"(?s)given as a list, not as 'i'.*pass \[loop\]"),
        (lambda s: s.unroll("C", ["i"]), r"\['i'\] is not a loop"),
    ],
)
def test_primitives_refuse_what_would_change_the_result(act, message):
    with pytest.raises(ScheduleError, match=message):
        act(State.initial(matmul_relu()))


def test_cache_write_reads_the_cached_stage():
    state, name = State.initial(matmul_relu()).cache_write("C", "local")
    assert name == "C.local"
    assert [s.name for s in state.stages] == ["A", "W", "C.local", "C", "D"]
    assert [p.name for p in state.current_dag.reads(state.stage("C").op)] == ["C.local"]
    assert [p.name for p in state.current_dag.reads(state.stage("D").op)] == ["C"]


def test_rfactor_makes_a_reduce_loop_a_space_axis():
    state, (outer, inner) = State.initial(matmul_relu()).split("C", "k", (4,))
    state, name = state.rfactor("C", inner, 2)
    assert name == "C.rf"
    assert state.stage("C.rf").compute.shape == (4, 8, 4)
    assert [a.extent for a in state.stage("C.rf").compute.reduce_axes] == [4]
    assert [a.extent for a in state.stage("C").compute.reduce_axes] == [4]
