"""CPU programs: what is proved, and the message for each kind of planted fault."""

from __future__ import annotations

import pytest

from ansorpy.ir.builders import minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ReduceKind, Var, const
from ansorpy.ir.loops import Alloc, If, Let, Seq, Stmt, Store
from ansorpy.ir.prove import Claim, Proof, Verdict, prove
from tests.ir.interpret.nests import buffer, load, loops, program

i, j, k, s, t = (Var(n) for n in "ijkst")
ZERO = const(0.0, DType.FLOAT32)
A, B, C = buffer("A", 13, 7), buffer("B", 13, 7), buffer("C", 13, 7)


def proof(body: Stmt) -> Proof:
    return prove(program(body, [A, B], [C]))


def refusal(body: Stmt, claim: Claim) -> str:
    found = [f.message for f in proof(body).refuted if f.claim is claim]
    assert found, proof(body).findings
    return found[0]


def rows(body: Stmt, extent: int = 13, kind: str = "parallel") -> Stmt:
    return loops(body, (i, extent, kind), (j, 7, "vectorized"))


def test_a_copy_by_rows_is_proved() -> None:
    found = proof(rows(Store(C, (i, j), load(A, i, j), None)))
    assert found.verdict is Verdict.PROVED
    claims = {f.claim for f in found.findings}
    assert claims == {Claim.BOUNDS, Claim.APART, Claim.COMPLETE}


def test_an_index_out_of_bounds_is_named_with_a_point() -> None:
    said = refusal(rows(Store(C, (i, j), load(A, i, j + 1), None)), Claim.BOUNDS)
    assert "A is read out of bounds: at index 7 of dimension 1, which has 7 elements" in said
    assert "j = 6" in said


def test_a_guard_keeps_an_index_in_bounds() -> None:
    inside = select((j >= 1) & (i * 7 + j < 90), load(A, i, j - 1), 0.0)
    assert proof(rows(Store(C, (i, j), inside, None))).verdict is Verdict.PROVED


def test_values_of_many_paths_are_proved_on_those_that_read() -> None:
    by_index = by_data = load(A, i, j - 1) * 1.0
    for n in range(25):
        by_index = select(j > n % 7, by_index * 2.0, by_index + 1.0)
        by_data = select(by_data > 1.0, by_data - 1.0, by_data)
    for value in (by_index, by_data):
        guarded = Store(C, (i, j), select(j >= 1, value, 0.0), None)
        assert proof(rows(guarded)).verdict is Verdict.PROVED
        inner = select(j >= 1, load(A, i, j - 1), 0.0)
        for n in range(10):
            inner = select(j > n % 7, inner * 2.0, inner + 1.0)
        assert proof(rows(Store(C, (i, j), inner, None))).verdict is Verdict.PROVED
        bare = proof(rows(Store(C, (i, j), value, None)))
        assert {f.claim for f in bare.findings if f.verdict is not Verdict.PROVED} == {Claim.BOUNDS}


def test_iterations_that_write_one_element_are_named() -> None:
    said = refusal(rows(Store(C, (i // 2, j), load(A, i, j), None)), Claim.APART)
    named = said.replace("1 and 0", "0 and 1")
    assert "iterations 0 and 1 of i write the same element of C at the same time" in named


def test_both_statements_of_a_race_are_named() -> None:
    body = Seq((
        Store(C, (i, j), load(A, i, j), None),
        Store(C, (12 - i, j), load(B, i, j), None),
    ))  # fmt: skip
    said = refusal(rows(body), Claim.APART)
    assert '"C[i, j] = A[i, j]"' in said and '"C[12 - i, j] = B[i, j]"' in said


def test_a_read_of_what_another_iteration_writes_is_a_race() -> None:
    near = Store(C, (i, j), load(A, i, j) + load(C, (i + 1) % 13, j), None)
    body = Seq((rows(Store(C, (i, j), ZERO, None)), rows(near)))
    assert "access the same element of C at the same time" in refusal(body, Claim.APART)


def test_a_sum_without_a_start_reads_before_it_is_written() -> None:
    acc = buffer("acc", 1, scope="local")
    add = loops(Store(acc, (const(0),), load(A, i, k), ReduceKind.SUM), (k, 7, "serial"))
    end = loops(Store(C, (i, j), load(acc, 0), None), (j, 7, "serial"))
    start = Store(acc, (const(0),), ZERO, None)
    whole = loops(Alloc(acc, Seq((start, add, end))), (i, 13, "parallel"))
    assert proof(whole).verdict is Verdict.PROVED
    said = refusal(loops(Alloc(acc, Seq((add, end))), (i, 13, "parallel")), Claim.DEFINED)
    assert "acc[0] is read before it is written" in said


def test_what_an_earlier_iteration_wrote_counts() -> None:
    line = buffer("line", 14, scope="local")
    step = Store(line, (k + 1,), load(line, k) + load(A, i, 0), None)
    end = loops(Store(C, (i, j), load(line, j * 2 + 1), None), (j, 7, "serial"))
    first = Store(line, (const(0),), ZERO, None)

    def nest(*parts: Stmt) -> Stmt:
        return loops(Alloc(line, Seq(parts)), (i, 13, "parallel"))

    scan = loops(step, (k, 13, "serial"))
    assert proof(nest(first, scan, end)).verdict is Verdict.PROVED
    assert "line[0] is read before" in refusal(nest(scan, first, end), Claim.DEFINED)


def test_an_output_must_be_written_in_full() -> None:
    said = refusal(rows(Store(C, (i, j), load(A, i, j), None), extent=12), Claim.COMPLETE)
    assert "C[12, " in said and "never written" in said


def tiles(value: Expr) -> Stmt:
    """Three tiles of 5 rows, of which the last starts early."""
    body = loops(Store(C, (s + k, j), value, None), (k, 5, "serial"), (j, 7, "serial"))
    return loops(Let(s, minimum(t * 5, 8), body), (t, 3, "parallel"))


def test_tiles_that_overlap_may_write_one_value() -> None:
    assert proof(tiles(load(A, s + k, j))).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (load(A, k, j), "the iterations read different elements of A"),
        (load(A, s + k, j) * t.astype("float32"), "the value depends on the iteration"),
    ],
)
def test_tiles_that_overlap_must_not_write_two_values(value: Expr, why: str) -> None:
    assert why in refusal(tiles(value), Claim.APART)


def test_what_depends_on_data_is_undecided() -> None:
    at = buffer("at", 13, dtype="int32")
    body = rows(Store(C, (i, j), load(A, load(at, i).astype("int64"), j), None))
    found = prove(program(body, [A, at], [C]))
    assert found.verdict is Verdict.UNDECIDED
    assert "depends on data" in found.undecided[0].message
    inside = rows(Store(C, (i, j), load(A, load(at, i).astype("int64") % 13, j), None))
    assert prove(program(inside, [A, at], [C])).verdict is Verdict.PROVED


def test_a_condition_on_data_leaves_an_output_undecided() -> None:
    flags = buffer("flags", 13, dtype="int32")
    body = If(load(flags, i) > 0, Store(C, (i, j), ZERO, None), None)
    found = prove(program(rows(body), [flags], [C]))
    assert [f.claim for f in found.undecided] == [Claim.COMPLETE]


def test_overlapping_tiles_that_gather_from_their_own_buffer_are_undecided_by_data() -> None:
    own, start = buffer("own", 5, 7, scope="local"), minimum(t * 5, 8)
    gathered = load(own, load(A, start + i, 0).astype("int64") % 5, j)
    fill = loops(
        Store(own, (i, j), load(B, start + i, j), None), (i, 5, "serial"), (j, 7, "serial")
    )
    copy = loops(Store(C, (start + i, j), gathered, None), (i, 5, "serial"), (j, 7, "serial"))
    found = proof(loops(Alloc(own, Seq((fill, copy))), (t, 3, "parallel")))
    assert not found.refuted
    assert found.is_decided


def sums_in_tiles_of_tiles(*, anew: bool) -> Stmt:
    """Sums of rows in tiles of 8 that overlap, each made in tiles of 7 that overlap.

    Those of 7 start *anew*, or one start is made for both, so that rows 1 to 6 are added twice.
    """
    own, row, inner = buffer("own", 8, scope="local"), minimum(t * 8, 5), minimum(k, 1)
    start: Stmt = loops(Store(own, (inner + i,), ZERO, None), (i, 7, "vectorized"))
    add = Store(own, (inner + i,), load(A, row + inner + i, j), ReduceKind.SUM)
    terms = loops(add, (j, 7, "serial"), (i, 7, "vectorized"))
    if anew:
        made = loops(Seq((start, terms)), (k, 2, "serial"))
    else:
        made = Seq((loops(start, (k, 2, "serial")), loops(terms, (k, 2, "serial"))))
    copy = loops(Store(C, (row + i, j), load(own, i), None), (i, 8, "serial"), (j, 7, "serial"))
    return loops(Alloc(own, Seq((made, copy))), (t, 2, "parallel"))


def test_tiles_of_tiles_that_start_anew_give_one_value() -> None:
    assert proof(sums_in_tiles_of_tiles(anew=True)).verdict is Verdict.PROVED


def test_tiles_of_tiles_that_add_terms_twice_are_not_proved() -> None:
    found = proof(sums_in_tiles_of_tiles(anew=False))
    assert {f.claim for f in found.findings if f.verdict is not Verdict.PROVED} == {Claim.APART}


def test_tiles_may_start_where_an_input_says() -> None:
    places, out = buffer("places", 8, dtype="int64"), buffer("out", 4, dtype="int64")
    body = Let(s, load(places, t) % 4, Store(out, (t,), const(0), None))
    found = prove(program(loops(body, (t, 4, "parallel")), [places], [out]))
    assert found.verdict is Verdict.PROVED
    same = Let(s, load(places, t) % 4, Store(out, (s,), const(0), None))
    found = prove(program(loops(same, (t, 4, "parallel")), [places], [out]))
    assert found.verdict is not Verdict.PROVED
