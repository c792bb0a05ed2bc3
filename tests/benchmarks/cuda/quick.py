"""Checks and cases that take no time, where only what runs them is tested.

``python -m tests.benchmarks.cuda.quick NAME`` is a check; its process imports next to nothing.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np

from tests.campaigns.campaign import Campaign, Tally

__all__ = ["QUICK"]


def case(rng: np.random.Generator, number: int) -> Tally:
    """A case that has compared four programs."""
    seen = Tally()
    seen.kinds.update({"programs": 4})
    return seen


QUICK = Campaign("cases that compare nothing", case)


def main(name: str) -> None:
    if name == os.environ.get("ANSORPY_TEST_DIES_IN"):
        os.abort()
    outcome = "ok" if name.startswith("driver.") else "skipped"
    print(json.dumps({"name": name, "outcome": outcome, "said": str(os.sched_getaffinity(0))}))


if __name__ == "__main__":
    main(sys.argv[1])
