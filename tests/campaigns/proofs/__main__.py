"""``python -m tests.campaigns.proofs``: prove whole suites, or mutants of programs."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Iterator

from ansorpy.evaluation.proofs import ProofCounts
from ansorpy.ir.dag import ComputeDAG
from ansorpy.rules.presets import ANSOR_CPU, CPU, CUDA, Preset
from ansorpy.target import Target
from benchmarks.zoo.light import NAMES
from tests.campaigns.proofs.judged import Judged, mutants
from tests.campaigns.proofs.suites import Proved, of_networks, of_operators, proved

_SPACES: dict[str, tuple[str, Preset]] = {
    "cpu": ("host", CPU), "ansor": ("host", ANSOR_CPU), "gpu": ("sm_90a", CUDA),
}  # fmt: skip


def main() -> int:
    """Print verdicts; the exit code is 1 if one is not as it should be.

    Of suites, nothing may be refuted, and only what data decides undecided.  Of mutants, none that
    the interpreter faults may be proved.
    """
    given = _arguments()
    wrong = 0
    for name, (target, preset) in _SPACES.items():
        if name not in given.spaces.split(","):
            continue
        if given.nets or given.ops:
            found = proved(_definitions(given), Target.parse(target), preset, given.seed)
            wrong += _show_proofs(name, found)
        else:
            wrong += _show_mutants(name, Target.parse(target), preset, given)
    return int(wrong > 0)


def _definitions(given: argparse.Namespace) -> Iterator[tuple[str, ComputeDAG]]:
    if given.ops:
        yield from of_operators()
    if given.nets:
        yield from of_networks(NAMES)


def _show_proofs(space: str, found: Iterator[Proved]) -> int:
    """Print what is not proved, and the counts; returns the number of programs at fault."""
    programs = []
    for program in found:
        programs.append(program)
        proof = program.proof
        messages = [f"{f.verdict.value}: {f.message}" for f in (*proof.refuted, *proof.undecided)]
        for message in dict.fromkeys([*messages, *filter(None, [proof.unfinished])]):
            print(f"{space}: {program.name}: {message}", flush=True)
    seconds = [program.seconds for program in programs]
    print(
        f"{space}: {ProofCounts.of([p.proof for p in programs])}; "
        f"{statistics.median(seconds):.3f} s in the median, {max(seconds):.3f} s at most"
    )
    return sum(bool(p.proof.refuted) or not p.proof.is_decided for p in programs)


def _show_mutants(
    space: str, target: Target, preset: Preset, given: argparse.Namespace
) -> int:  # fmt: skip
    """Print verdicts beside the interpreter's; returns the number of false proofs."""
    counts: Counter[str] = Counter()
    wrong = 0
    for found in mutants(target, preset, given.seed, given.mutants):
        counts[_row(found)] += 1
        wrong += found.is_false_proof
        if found.is_false_proof or (found.is_false_alarm and given.alarms):
            said = found.fault or found.proof.refuted[0].message
            print(f"{space}: {_row(found)}: {found.change}: {said}")
    print(f"{space}: " + ", ".join(f"{n} {row}" for row, n in sorted(counts.items())))
    return wrong


def _row(found: Judged) -> str:
    return f"{'run' if found.fault is None else 'fault'}, {found.proof.verdict.value}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.proofs", description=__doc__)
    parser.add_argument("--ops", action="store_true", help="prove the operator suite")
    parser.add_argument("--nets", action="store_true", help="prove the light networks")
    parser.add_argument("--spaces", default=",".join(_SPACES), help="of cpu, ansor and gpu")
    parser.add_argument("--mutants", type=int, default=200, help="changed programs per space")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--alarms", action="store_true", help="print programs that ran but were refuted"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
