"""The campaigns by name."""

from __future__ import annotations

from tests.campaigns.campaign import Campaign
from tests.campaigns.exports.campaign import EXPORTS
from tests.campaigns.exports.team_campaign import TEAM
from tests.campaigns.faults.campaign import FAULTS
from tests.campaigns.schedules import SCHEDULES

__all__ = ["CAMPAIGNS"]

CAMPAIGNS: dict[str, Campaign] = {
    "exports": EXPORTS,
    "faults": FAULTS,
    "schedules": SCHEDULES,
    "team": TEAM,
}
