"""Programs are proved in a worker, within a time limit, and only once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.ir.prove import Claim, Finding, Proof, Verdict
from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.measure.proofs.prover import Prover
from ansorpy.measure.proofs.wire import proof_from_fields, proof_to_fields
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import trial_digest
from ansorpy.schedule.state import State
from tests import workloads
from tests.measure.proofs import stuck


def doubled(name: str = "out") -> list[Tensor]:
    x = placeholder((13,), name="x")
    return [x, compute((13,), lambda i: x[i] * 2.0, name=name)]


def packed() -> State:
    """A product with a packed constant, in parallel tiles of rows."""
    state, (outer, _) = State.initial(workloads.matmul(13, 8, 6, constant=True)).split(
        "C", "i", (5,)
    )
    state = state.pack("C", "B")
    return state.parallel("C", [outer])


def test_the_programs_of_a_call_and_of_its_constants_are_proved() -> None:
    with Database() as database, Prover(database) as prover:
        proof = prover.prove(packed())
    assert proof.verdict is Verdict.PROVED and not proof.unfinished
    claims = [finding.claim for finding in proof.findings]
    assert claims.count(Claim.COMPLETE) == 2, "the product, and the packed constant"


def test_a_program_is_proved_once(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database, Prover(database) as prover:
        proof = prover.prove(packed())
    with (
        Database(tmp_path / "t.db") as database,
        Prover(database, module=stuck.__name__, limit_s=0.1) as prover,
    ):
        again = prover.prove(packed())
    assert again.verdict is proof.verdict and len(again.findings) == len(proof.findings)


@pytest.mark.parametrize(("name", "why"), [("out", "time: no answer"), ("dies", "crash: ")])
def test_what_the_worker_does_not_answer_is_unfinished_and_not_kept(name: str, why: str) -> None:
    state = State.initial(doubled(name))
    with Database() as database:
        with Prover(database, module=stuck.__name__, limit_s=0.5) as prover:
            proof = prover.prove(state)
        assert proof.verdict is Verdict.UNDECIDED and not proof.is_decided
        assert proof.unfinished.startswith(why)
        with Prover(database) as prover:
            assert prover.prove(state).verdict is Verdict.PROVED


def test_what_a_database_holds_of_a_program_is_believed() -> None:
    state = State.initial(doubled())
    planted = Proof.of([Finding.refuted(Claim.BOUNDS, "out is read at 13")])
    with Database() as database, Prover(database, module=stuck.__name__) as prover:
        definition = database.definitions.identify(state.definition)
        database.proofs.put(definition, trial_digest(state), planted)
        assert prover.prove(state) == planted


def test_proofs_survive_being_written() -> None:
    found = Proof.of([
        Finding.proved(Claim.BOUNDS), Finding.refuted(Claim.APART, "threads race"),
        Finding.by_data(Claim.DEFINED, "unless data"), Finding.undecided(Claim.HELD, "unclear"),
        Finding.proved(Claim.BOUNDS),
    ])  # fmt: skip
    read = proof_from_fields(proof_to_fields(found))
    assert len(read.proved) == 2 and read.refuted == found.refuted
    assert read.undecided == found.undecided and not read.is_decided
