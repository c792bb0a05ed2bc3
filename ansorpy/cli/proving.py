"""The steps of ``verify --static``: the programs of a library or network, each proved."""

from __future__ import annotations

from ansorpy.api.evaluate.libraries import is_library
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.models import finished_from
from ansorpy.cli.kernels import library_kernels
from ansorpy.cli.status_line import busy
from ansorpy.evaluation.kernels import part_name
from ansorpy.evaluation.proofs import StaticVerification
from ansorpy.measure.proofs.prover import Prover
from ansorpy.measure.records.database import Database

__all__ = ["verify_static"]


def verify_static(lookup: Lookup) -> StaticVerification:
    """Prove the programs that a library says it was made from, or those of a network's records.

    Each part of the sizes is proved for the sizes that it serves.

    Raises:
        ForeignFile: The library was made by another version.
        UsageError: It does not say what it was made from.
    """
    if not is_library(lookup.model):
        lookup.warn_of_predictions()
        proofs = tuple(
            (part_name(one.task.name, state), proof)
            for one in finished_from(lookup).chosen
            for state, proof in zip(one.states, one.proofs, strict=True)
        )
        return StaticVerification(lookup.model.name, proofs)
    kernels = library_kernels(lookup.model)
    with Database() as database, Prover(database) as prover, busy("proving"):
        proofs = tuple(
            (part_name(kernel.name, state), prover.prove(state))
            for kernel in kernels
            for state in kernel.states
        )
    return StaticVerification(lookup.model.name, proofs)
