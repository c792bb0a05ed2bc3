"""ChainAtBlock: products and their producers, one block of the result at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from

from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.placement.compute_location import locations
from ansorpy.rules.presets import CPU as DEFAULT
from ansorpy.rules.sketch.chain_at_block import ChainAtBlock
from ansorpy.rules.verdict import Answer
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests import workloads
from tests.budget import examples
from tests.properties.test_schedules import inputs_of, interpreted
from tests.rules.asking import ALONE, CPU, SKIP, ask, derive

RULE = ChainAtBlock()

WINOGRAD = """\
for i in 0..1
  for y.0 in 0..?
    for z.0 in 0..?
      for i in 0..1
        for y in 0..10
          for z in 0..10
            for c.0 in 0..?
              for c.1 in 0..?
                pad[i, y, z, c] = ...
      for i in 0..1
        for y in 0..4
          for z in 0..4
            for c.0 in 0..?
              for i in 0..1
                for y in 0..4
                  for z in 0..4
                    for v in 0..4
                      for u in 0..4  # unrolled
                        for c in 0..16
                          T[i, y, z, u, v, c] = ...
              for u in 0..4
                for v in 0..4  # unrolled
                  for c.1 in 0..?
                    V[u, v, i, y, z, c] = ...
      for o.0 in 0..?
        for u in 0..4
          for v in 0..4
            for i in 0..1
              for o.0 in 0..?
                for o.1 in 0..?
                  for y.0 in 0..?
                    for z.0 in 0..?
                      for r in 0..16  # reduce
                        for y.1 in 0..?
                          for z.1 in 0..?
                            for o.2 in 0..?
                              M[u, v, i, y, z, o] += ...
        for y.1 in 0..?
          for z.1 in 0..?
            for o.1 in 0..?
              for y.2 in 0..?
                for z.2 in 0..?
                  for o.2 in 0..?
                    for i in 0..1
                      for y in 0..4
                        for z in 0..4
                          for v in 0..4
                            for a in 0..2  # unrolled
                              for o in 0..32
                                Y1[i, y, z, a, v, o] = ...
                    for y.3 in 0..2
                      for z.3 in 0..2  # unrolled
                        for o.3 in 0..?
                          out[i, y, z, o] = ..."""
"""Every stage is computed at a block of tiles."""


def test_winograd_is_computed_a_block_of_tiles_at_a_time() -> None:
    blocked, apart = derive(RULE, workloads.chosen_winograd(1, 8, 8, 16, 32), "out")
    state, following = blocked
    assert following == "", "all stages have their place"
    run = state.text().split("placeholder bias\n")[1]
    assert run == WINOGRAD
    assert {s.name for s in apart[0].stages if s.attach} == {"T", "M", "Y1"}


def test_attention_keeps_scores_and_their_sums_in_the_block() -> None:
    (state, _), _ = derive(RULE, workloads.attention(4, 32, 32, 16), "out")
    attached = [s.name for s in state.stages if s.attach is not None]
    assert attached == ["S", "top", "E", "P", "total"]
    outside = {s.attach.iter for s in state.stages if s.attach is not None and s.name != "P"}
    assert outside == {"i.0"}, "none of them depends on the columns of the result"


def test_a_copy_of_keys_serves_all_blocks_of_rows_of_a_head() -> None:
    """K is read across its rows, so it is copied at the root or once per head, for any blocks."""
    (state, _), _ = derive(RULE, workloads.attention(4, 32, 32, 16), "out")
    places = locations(state, state.stage("K.local"))
    assert [(at.stage, at.iter) for at in places] == [("out", "h.0")]


def test_arithmetic_in_front_of_a_product_is_done_once_a_block() -> None:
    (blocked, _), (whole, _) = derive(RULE, workloads.activated_matmul(32, 32, 32), "out")
    for state in (blocked, whole):
        assert all(state.stage(name).inlined for name in ("scaled", "shifted"))
        assert not state.stage("relu").inlined
    assert blocked.stage("relu").attach is not None and whole.stage("relu").attach is None


@pytest.mark.parametrize(
    ("tensors", "answer"),
    [
        (workloads.chosen_winograd(1, 8, 8, 16, 16), ALONE),
        (workloads.depthwise_pointwise(1, 8, 8, 16, 16), ALONE),
        (workloads.double_matmul(32), ALONE),
        (workloads.activated_matmul(32, 32, 32), ALONE),
        (workloads.matmul(32, 32, 32), SKIP),
        (workloads.conv2d_bn_relu(1, 8, 8, 4, 4), SKIP),  # only padding comes before
        (workloads.softmax(8, 32), SKIP),  # nothing is re-read
    ],
)
def test_answers(tensors: list[Tensor], answer: Answer) -> None:
    assert ask(RULE, tensors, ComputeDAG.of(tensors).outputs[0].name).answer is answer


def test_prime_channels_fill_vectors() -> None:
    """The last tile of an axis is shifted to fit, so 67 channels are vectors of 16."""
    dag = ComputeDAG.of(workloads.chosen_winograd(1, 8, 8, 67, 71))
    rng = np.random.default_rng(0)
    for sketch in SketchSampler(Task(dag, CPU, 2), DEFAULT).draw(2, rng):
        cut = {d.name: set(d.domain.rows[:, -1]) for d in sketch.space.decisions}
        assert cut["V.c"] >= {16, 67}
        assert cut["out.o"] >= {16, 71}


def causal_attention(heads: int, tokens: int, dim: int) -> list[Tensor]:
    """``softmax(Q K^T) V`` for each head, where no token looks at later ones."""
    given, square = (heads, tokens, dim), (heads, tokens, tokens)
    q, k, v = (placeholder(given, name=name) for name in "QKV")
    d, *r = (reduce_axis(n, name=x) for n, x in ((dim, "d"), *((tokens, x) for x in "abc")))
    scores = compute(square, lambda h, i, j: ap.sum(q[h, i, d] * k[h, j, d], axis=d), name="S")
    masked = compute(square, lambda h, i, j: ap.select(i >= j, scores[h, i, j], -1e9), name="M")
    top = compute(square[:2], lambda h, i: ap.max(masked[h, i, r[0]], axis=r[0]), name="top")
    e = compute(square, lambda h, i, j: ap.exp(masked[h, i, j] - top[h, i]), name="E")
    total = compute(square[:2], lambda h, i: ap.sum(e[h, i, r[1]], axis=r[1]), name="total")
    mixed = compute(
        given, lambda h, i, j: ap.sum(e[h, i, r[2]] * v[h, r[2], j], axis=r[2]), name="P"
    )
    return [q, k, v, compute(given, lambda h, i, j: mixed[h, i, j] / total[h, i], name="out")]


def test_prime_numbers_of_tokens_are_cut_into_vectors_and_tiles_of_rows() -> None:
    (state, _), _ = derive(RULE, causal_attention(3, 197, 48), "out")
    cut = {d.name: set(d.domain.rows[:, -1]) for d in state.decisions}
    assert 16 in cut["S.j"]
    assert cut["out.i"] >= {4, 6, 8}


@pytest.mark.parametrize(("tokens", "exact"), [(128, True), (56, True), (77, True), (3, True),
                                               (197, False), (50, True), (34, False)])  # fmt: skip
def test_rows_with_good_divisors_are_cut_exactly(tokens: int, exact: bool) -> None:
    for state, _ in derive(RULE, causal_attention(3, tokens, 48), "out"):
        cut = {d.name: d.domain.rows for d in state.decisions}["out.i"]
        assert all(tokens % n == 0 for n in cut.prod(axis=1)) is exact


@examples(20)
@given(sizes=sampled_from([(2, 37, 5), (3, 17, 18), (1, 29, 33)]), seed=integers(0, 2**31))
def test_shifted_rows_and_keys_compute_attention(sizes: tuple[int, int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = ComputeDAG.of(causal_attention(*sizes))
    sketch = SketchSampler(Task(dag, CPU, 2), DEFAULT).draw_one(rng)
    table = sketch.sample(64, rng)
    rows = table[sketch.valid(table)]
    assert len(rows)
    data = inputs_of(sketch.resolve(rows[0]), rng)
    [want] = run_dag(dag, data)
    [got] = interpreted(lower(sketch.resolve(rows[0])), data)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def row_sums_of_products(n: int, m: int, k: int, width: int) -> list[Tensor]:
    """``out[i]``: the sum of row i of ``(A B) C``, divided by the largest element of A."""
    a, b, c = (placeholder(s, name=x) for s, x in (((n, m), "A"), ((m, k), "B"), ((k, width), "C")))
    u, v = reduce_axis(n, name="u"), reduce_axis(m, name="v")
    top = compute((), lambda: ap.max(ap.abs(a[u, v]), axis=(u, v)), name="top")
    r, s, t = (reduce_axis(x, name=y) for x, y in ((m, "r"), (k, "s"), (width, "t")))
    left = compute(
        (n, k), lambda i, j: ap.sum(a[i, r] / (top[()] + 1.0) * b[r, j], axis=r), name="left"
    )
    both = compute((n, width), lambda i, j: ap.sum(left[i, s] * c[s, j], axis=s), name="both")
    return [a, b, c, compute((n,), lambda i: ap.sum(both[i, t], axis=t), name="out")]


@pytest.mark.parametrize("sizes", [(5, 3, 7, 11), (21, 4, 6, 20)])
def test_a_chain_may_end_in_a_sum_and_hold_a_single_element(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    dag = ComputeDAG.of(row_sums_of_products(*sizes))
    sketches = [s for s, _ in derive(RULE, State.initial(dag), "out")]
    assert sketches and all(s.stage("top").attach is not None for s in sketches[:1])
    assert_programs_compute(dag, rng)


def assert_programs_compute(dag: ComputeDAG, rng: np.random.Generator) -> None:
    """Check that some programs of *dag* give the same results as the interpreter."""
    data = inputs_of(State.initial(dag), rng)
    [want] = run_dag(dag, data)
    for sketch in SketchSampler(Task(dag, CPU, 2), DEFAULT).draw(4, rng):
        table = sketch.sample(64, rng)
        for row in table[sketch.valid(table)][:1]:
            [got] = interpreted(lower(sketch.resolve(row)), data)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def butterflies(n: int, k: int) -> list[Tensor]:
    """Sums and differences, three times over, of both rows of a product of ``tanh(X)``."""
    x, w, r = placeholder((2, k), name="X"), placeholder((k, n), name="W"), reduce_axis(k, name="r")
    v = compute((2, k), lambda u, c: ap.tanh(x[u, c]), name="V")
    read: Tensor = compute((2, n), lambda u, o: ap.sum(v[u, r] * w[r, o], axis=r), name="M")

    def turned(t: Tensor, name: str) -> Tensor:
        return compute(
            (2, n),
            lambda s, o: ap.select(s.equal(0), t[0, o] + t[1, o], t[0, o] - t[1, o]),
            name=name,
        )

    for name in ("T1", "T2", "out"):
        read = turned(read, name)
    return [x, w, read]


@pytest.mark.parametrize(("n", "k"), [(16, 8), (5, 3)])
def test_a_reader_may_have_no_loops_but_those_that_select(
    n: int, k: int, rng: np.random.Generator
) -> None:
    dag = ComputeDAG.of(butterflies(n, k))
    assert derive(RULE, State.initial(dag), "out")
    assert_programs_compute(dag, rng)


CHAINS = {
    "winograd": lambda a, b, c, d: workloads.chosen_winograd(1 + d % 2, a, b, c, 3 * d),
    "pair": lambda a, b, c, d: workloads.depthwise_pointwise(1 + d % 2, a, b, c, 3 * d),
    "attention": lambda a, b, c, d: workloads.attention(d, a, b, 2 * c),
}


@examples(25)
@given(
    kind=sampled_from(sorted(CHAINS)),
    sizes=sampled_from(
        [(1, 1, 1, 1), (5, 3, 7, 2), (4, 9, 8, 3), (3, 2, 19, 7), (13, 2, 5, 6), (7, 7, 3, 11)]
    ),
    seed=integers(0, 2**31),
)
def test_every_block_and_tile_computes_the_definition(
    kind: str, sizes: tuple[int, int, int, int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    dag = ComputeDAG.of(CHAINS[kind](*sizes))
    sampler = SketchSampler(Task(dag, CPU, 2), DEFAULT)
    sketch = sampler.draw_one(rng)
    table = sketch.sample(32, rng)
    rows = table[sketch.valid(table)]
    if not len(rows):
        return
    state = sketch.resolve(rows[0])
    data = inputs_of(state, rng)
    [want] = run_dag(dag, data)
    [got] = interpreted(lower(state), data)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
