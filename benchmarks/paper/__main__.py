"""``python -m benchmarks.paper``: the experiments of Ansor's evaluation, on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.paper import ablation, networks, operators
from benchmarks.study.command import run_study
from benchmarks.study.study import Study

__all__ = ["DOCS", "main", "paper"]

DOCS = Path(__file__).parents[2] / "docs"
ABOUT = """\
The experiments of Ansor's evaluation (Zheng et al., OSDI 2020, section 7) on this machine, each
beside what the paper claims and what differs. They take days at the paper's budgets: the command
stops when its budget is spent, and continues when it is called again."""


def paper(docs: Path = DOCS) -> Study:
    """The experiments, whose page is written into *docs*."""
    search, scheduler = ablation.STAGES
    stages = (*operators.STAGES, search, *networks.STAGES[:1], scheduler, *networks.STAGES[1:])
    return Study("paper", "Ansor's figures, again", ABOUT, docs / "results" / "paper.md", stages)


def main(arguments: Sequence[str] | None = None, docs: Path = DOCS) -> int:
    """Run the command line."""
    return run_study(paper(docs), arguments)


if __name__ == "__main__":
    sys.exit(main())
