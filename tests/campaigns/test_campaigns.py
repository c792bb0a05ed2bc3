"""The short form of every campaign."""

from __future__ import annotations

import pytest

from tests.campaigns.campaign import run_case
from tests.campaigns.catalogue import CAMPAIGNS

CASES = [(name, number) for name, campaign in CAMPAIGNS.items() for number in range(campaign.short)]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_campaigns_first_cases_pass(name: str, number: int) -> None:
    assert run_case(CAMPAIGNS[name], 0, number).kinds
