"""Verdicts of the proofs, compared with those of the interpreter, which runs the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ansorpy.errors import LoweringError
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import Buffer, Program, Role
from ansorpy.ir.prove import Proof, Verdict, prove
from ansorpy.rules.presets import Preset
from ansorpy.schedule.lowering.program import Lowered
from ansorpy.target import Target
from tests.campaigns.proofs.mutants import mutant
from tests.campaigns.proofs.programs import drawn, small_definitions

__all__ = ["Judged", "judged", "mutants"]

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Judged:
    """A program, its change, the fault that the interpreter found, and the proof."""

    program: Program
    change: str
    fault: str | None
    proof: Proof

    @property
    def is_false_proof(self) -> bool:
        """True if the program faults but was proved."""
        return self.fault is not None and self.proof.verdict is Verdict.PROVED

    @property
    def is_false_alarm(self) -> bool:
        """True if the program runs without a fault but was refuted.

        A race between iterations around an allocation is not a false alarm: the interpreter gives
        each iteration new memory, but a GPU does not.
        """
        return self.fault is None and self.proof.verdict is Verdict.REFUTED


def judged(lowered: Lowered, change: str, rng: np.random.Generator) -> Judged:
    """Run ``lowered.run`` once on random inputs, and prove it."""
    known: dict[str, Array] = {}
    if lowered.bind is not None:
        _run(lowered.bind, known, rng)
    try:
        _run(lowered.run, known, rng)
        fault = None
    except LoweringError as error:
        fault = error.message
    return Judged(lowered.run, change, fault, prove(lowered.run, lowered.bind))


def mutants(
    target: Target, preset: Preset | None, seed: int, count: int, each: int = 5
) -> Iterator[Judged]:
    """*count* mutants of random programs of small definitions, *each* per program."""
    rng, made = np.random.default_rng(seed), 0
    definitions = small_definitions(gpu=bool(target.max_shared_bytes))
    while made < count:
        dag = definitions[int(rng.integers(len(definitions)))]
        for _, lowered in drawn(dag, target, preset, rng, 1):
            for _ in range(min(each, count - made)):
                changed = mutant(lowered.run, rng)
                if changed is not None:
                    yield judged(replace(lowered, run=changed[0]), changed[1], rng)
                made += 1


def _run(program: Program, known: dict[str, Array], rng: np.random.Generator) -> None:
    """Run *program*; arrays that are not *known* are random, and all are known afterwards."""
    for param in program.params:
        if param.role is Role.OUTPUT or param.buffer.name not in known:
            known[param.buffer.name] = _random(param.buffer, rng)
    run_program(program, [known[p.buffer.name] for p in program.params])


def _random(buffer: Buffer, rng: np.random.Generator) -> Array:
    drawn = rng.standard_normal(buffer.shape) if buffer.dtype.is_float else rng.integers(
        0, 4, buffer.shape
    )  # fmt: skip
    return np.asarray(drawn).astype(buffer.dtype.numpy)
