"""Prove chosen programs in a worker process, each within a time limit and only once."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from ansorpy.deadline import OutOfTime
from ansorpy.errors import ForeignFile
from ansorpy.ir.prove import Proof
from ansorpy.measure.proofs.wire import proof_from_fields
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import trial_digest
from ansorpy.measure.workers.locks import lock_cores
from ansorpy.measure.workers.processes import usable_cores
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.supervisor import Failure, Reply, Worker
from ansorpy.profiler import Activity, profiled
from ansorpy.schedule.serialize import states_to_json
from ansorpy.schedule.state import State

__all__ = ["LIMIT_S", "Prover"]

LIMIT_S = 2.0
"""Time limit for one program in seconds, as isl has none; most take a twentieth of it."""

_STARVED_S = 20.0
"""The same if other processes keep the worker off its core."""

_MEMORY_BYTES = 4 << 30


class Prover:
    """A proving worker, started when first needed; *database* keeps its proofs.

    Args:
        limit_s: Seconds for one program; if there is no answer by then, nothing is proved about it.
        module: Module with the worker's handlers.
        lock_folder: Folder of the machine-wide core locks: proving waits while others time.
    """

    def __init__(
        self,
        database: Database,
        *,
        limit_s: float = LIMIT_S,
        module: str = "ansorpy.measure.proofs.handlers",
        lock_folder: Path | None = None,
    ) -> None:
        self._database = database
        self._limit_s = limit_s
        self._worker = Worker(module, memory_bytes=_MEMORY_BYTES)
        self._lock_folder = lock_folder

    def __enter__(self) -> Prover:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._worker.close()

    def prove(self, state: State) -> Proof:
        """Prove the programs of *state*, which has no open decision.

        The proof is unfinished if the worker did not answer in time or crashed; such proofs are not
        kept.
        """
        identity = self._database.definitions.identify(state.definition), trial_digest(state)
        known = self._database.proofs.get(*identity)
        if known is not None:
            return known
        [(definition, steps)] = states_to_json([state])
        message = Message("prove", {}, (definition.encode(), steps.encode()))
        with profiled(Activity.PROVE):
            proof = _interpreted(self._request(message))
        if not proof.unfinished:
            self._database.proofs.put(*identity, proof)
        return proof

    def remember(self, state: State, proof: Proof) -> None:
        """Keep *proof*, a finished one of *state* that was made elsewhere."""
        identity = self._database.definitions.identify(state.definition), trial_digest(state)
        self._database.proofs.put(*identity, proof)

    def _request(self, message: Message) -> Reply:
        try:
            with lock_cores(usable_cores(), self._lock_folder, shared=True):
                return self._worker.request(message, self._limit_s, starved_s=_STARVED_S)
        except OutOfTime:
            return Failure("timeout", "the run's time was up")


def _interpreted(reply: Reply) -> Proof:
    if isinstance(reply, Failure):
        cause = "time" if reply.kind == "timeout" else reply.kind
        return Proof((), f"{cause}: {reply.reason}")
    if reply.kind != "proof":
        return Proof((), f"error: {reply.fields.get('text')}")
    try:
        return proof_from_fields(reply.fields)
    except ForeignFile as error:
        return Proof((), f"error: the proving worker answered: {error.message}")
