"""The campaigns by name."""

from __future__ import annotations

from tests.campaigns.campaign import Campaign
from tests.campaigns.conformance.campaign import CONFORMANCE
from tests.campaigns.device import DEVICE
from tests.campaigns.exported.campaign import EXPORTED
from tests.campaigns.exports.campaign import EXPORTS
from tests.campaigns.exports.soak import SOAK
from tests.campaigns.exports.team_campaign import TEAM
from tests.campaigns.exports.wheels import WHEELS
from tests.campaigns.faults.campaign import FAULTS
from tests.campaigns.inputs.campaign import INPUTS
from tests.campaigns.networks.campaign import NETWORKS
from tests.campaigns.numbers.functions import NUMBERS
from tests.campaigns.numbers.reductions import REDUCTIONS
from tests.campaigns.replay import REPLAY
from tests.campaigns.schedules import GPU_SCHEDULES, SCHEDULES
from tests.campaigns.task_trials import TASK_TRIALS

__all__ = ["CAMPAIGNS"]

CAMPAIGNS: dict[str, Campaign] = {
    "task_trials": TASK_TRIALS,
    "conformance": CONFORMANCE,
    "device": DEVICE,
    "exported": EXPORTED,
    "exports": EXPORTS,
    "faults": FAULTS,
    "gpu-schedules": GPU_SCHEDULES,
    "inputs": INPUTS,
    "networks": NETWORKS,
    "numbers": NUMBERS,
    "reductions": REDUCTIONS,
    "replay": REPLAY,
    "schedules": SCHEDULES,
    "soak": SOAK,
    "team": TEAM,
    "wheels": WHEELS,
}
