"""The steps of ``verify --static``: the programs of a library or network, each proved."""

from __future__ import annotations

from ansorpy.cli.lookup import Lookup
from ansorpy.cli.models import from_records, is_library
from ansorpy.errors import UsageError
from ansorpy.measure.proofs.prover import Prover
from ansorpy.measure.records.database import Database
from ansorpy.report.proofs import StaticVerification
from ansorpy.runtime.library.shared_library import read_library
from ansorpy.runtime.schedules import state_of

__all__ = ["verify_static"]


def verify_static(lookup: Lookup) -> StaticVerification:
    """Prove the programs that a library says it was made from, or those of a network's records.

    Raises:
        ForeignFile: The library was made by another version.
        UsageError: It does not say what it was made from.
    """
    if not is_library(lookup.model):
        lookup.warn_of_predictions()
        chosen = from_records(lookup)[0].chosen
        proofs = tuple((one.task.name, proof) for one in chosen for proof in one.proofs)
        return StaticVerification(lookup.model.name, proofs)
    programs = read_library(lookup.model)[0].programs
    if not programs:
        raise UsageError(f"{lookup.model} does not say what programs it was made from")
    with Database() as database, Prover(database) as prover:
        return StaticVerification(
            lookup.model.name,
            tuple((name, prover.prove(state_of(schedule))) for name, schedule in programs.items()),
        )
