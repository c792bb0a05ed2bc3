"""The thread team: its protocol as a state machine, its code under ThreadSanitizer."""

from __future__ import annotations

import numpy as np

from tests.campaigns.campaign import Campaign
from tests.campaigns.exports.team_model import LEFT_OUT, Broken, Team, explore
from tests.campaigns.exports.team_sanitized import WEAKENED, can_sanitize, run_regions

__all__ = ["TEAM"]

MODELS = (
    Team(1, (2, 2)), Team(1, (2, 1, 2)), Team(2, (3,)), Team(2, (2, 3)), Team(2, (3, 2)),
    *(Team(1, (2, 2), part) for part in LEFT_OUT),
)  # fmt: skip
REGIONS = 40
"""Cases of regions under ThreadSanitizer."""


def _case(rng: np.random.Generator, number: int) -> str:
    """First one region run, since it is quick; then all models; then the others."""
    if 0 < number <= len(MODELS):
        return _explored(MODELS[number - 1])
    if not can_sanitize():
        return "not run: there is no clang"
    weaker = number - len(MODELS) - REGIONS
    if weaker >= 0:
        return _weakened(list(WEAKENED)[weaker], rng)
    callers, seed = int(rng.integers(1, 5)), int(rng.integers(1 << 30))
    run_regions(callers, 300, seed)
    return "regions without a race"


def _explored(team: Team) -> str:
    """A whole protocol is right; without one of its parts it is not, and that is noticed."""
    if not team.left_out:
        explore(team)
        return "model without a wrong state"
    try:
        explore(team)
    except Broken:
        return "model with a fault that is found"
    raise AssertionError(f"nothing is found wrong without the {team.left_out}")


def _weakened(access: str, rng: np.random.Generator) -> str:
    """A weaker order is found in one of several runs."""
    for _ in range(5):
        if not run_regions(3, 300, int(rng.integers(1 << 30)), access):
            return "weaker order that is found"
    raise AssertionError(f"nobody notices a weaker order at {access}")


TEAM = Campaign(
    "explores the thread team's protocol, and runs its code under ThreadSanitizer",
    _case,
    size=len(MODELS) + REGIONS + len(WEAKENED),
    short=2,
    limit_s=600.0,
)
