"""``python -m benchmarks.prove``: test the proofs of memory safety on mutants of programs."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from ansorpy.rules.presets import ANSOR_CPU, CPU, CUDA, Preset
from ansorpy.target import Target
from benchmarks.prove.judged import Judged, mutants

_SPACES: dict[str, tuple[str, Preset]] = {
    "cpu": ("host", CPU), "ansor": ("host", ANSOR_CPU), "gpu": ("sm_90a", CUDA),
}  # fmt: skip


def main() -> int:
    """Print verdicts beside the interpreter's; the exit code is 1 if a program that faults was
    proved."""
    given = _arguments()
    wrong = 0
    for name, (target, preset) in _SPACES.items():
        counts: Counter[str] = Counter()
        for found in mutants(Target.parse(target), preset, given.seed, given.mutants):
            counts[_row(found)] += 1
            wrong += found.is_false_proof
            if found.is_false_proof or (found.is_false_alarm and given.alarms):
                said = found.fault or found.proof.refuted[0].message
                print(f"{name}: {_row(found)}: {found.change}: {said}")
        print(f"{name}: " + ", ".join(f"{n} {row}" for row, n in sorted(counts.items())))
    return int(wrong > 0)


def _row(found: Judged) -> str:
    return f"{'run' if found.fault is None else 'fault'}, {found.proof.verdict.value}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.prove", description=__doc__)
    parser.add_argument("--mutants", type=int, default=200, help="changed programs per space")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alarms", action="store_true", help="print what ran but was refuted")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
