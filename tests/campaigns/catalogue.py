"""The campaigns by name."""

from __future__ import annotations

from tests.campaigns.campaign import Campaign
from tests.campaigns.schedules import SCHEDULES

__all__ = ["CAMPAIGNS"]

CAMPAIGNS: dict[str, Campaign] = {
    "schedules": SCHEDULES,
}
