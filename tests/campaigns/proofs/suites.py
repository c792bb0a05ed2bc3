"""Random programs of the operator suite and of the ``light`` networks, all proved."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.prove import Proof
from ansorpy.measure.proofs.prover import Prover
from ansorpy.measure.records.database import Database
from ansorpy.rules.presets import Preset
from ansorpy.target import Target
from benchmarks.ops.suite import cases
from benchmarks.zoo.light import light_model
from tests.campaigns.proofs.programs import drawn

__all__ = ["Proved", "of_networks", "of_operators", "proved"]


@dataclass(frozen=True)
class Proved:
    """What was found about one program of the definition ``name``, and in how many seconds."""

    name: str
    proof: Proof
    seconds: float


def of_operators(every: int = 1) -> Iterator[tuple[str, ComputeDAG]]:
    """Names and definitions of every so many cases of the operator suite."""
    for case in cases()[::every]:
        yield case.name, case.dag


def of_networks(names: Sequence[str], every: int = 1) -> Iterator[tuple[str, ComputeDAG]]:
    """Names and definitions of every so many tasks of ``light`` networks."""
    for name in names:
        project = open_project(light_model(name, 0), Request.of(effort="none"))
        for task in list(project.all_tasks)[::every]:
            yield f"{name}: {task.name}", task.dag


def proved(
    definitions: Iterable[tuple[str, ComputeDAG]],
    target: Target,
    preset: Preset,
    seed: int,
    each: int = 1,
) -> Iterator[Proved]:
    """Prove random programs of *each* so many placed sketches of the named *definitions*."""
    rng = np.random.default_rng(seed)
    with Database() as database, Prover(database) as prover:
        for name, dag in definitions:
            for program in drawn(dag, target, preset, rng, each):
                begin = time.perf_counter()
                proof = prover.prove(program.state)
                yield Proved(name, proof, time.perf_counter() - begin)
