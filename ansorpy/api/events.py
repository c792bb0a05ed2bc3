"""Events that a search of networks reports in addition to its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansorpy.api.project import Project
from ansorpy.api.request import Request
from ansorpy.graph.alternatives import Alternatives
from ansorpy.measure.records.database import Database
from ansorpy.search.events import Event
from ansorpy.tasks.outcome import Tuning
from ansorpy.tasks.trial_plan import TrialPlan

__all__ = ["PeerTimed", "Planned", "Tuned"]


@dataclass(frozen=True)
class Planned(Event):
    """Reported before anything is measured.

    Args:
        networks: The networks; empty if a single operator is tuned.
        plan: None if nothing will be measured.
    """

    networks: Sequence[Project]
    request: Request
    plan: TrialPlan | None

    @property
    def name(self) -> str:
        """The networks' names, or the operator's."""
        if self.networks:
            return ", ".join(network.name for network in self.networks)
        return self.plan.tasks[0].task.name if self.plan else ""


@dataclass(frozen=True)
class PeerTimed(Event):
    """Another engine runs the network in ``seconds``."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Tuned(Event):
    """Measuring has ended, by itself or because the user stopped it.

    Args:
        weights: Calls of each task, by key, with regions partitioned in their fastest known ways.
        regions: The regions of each network, with the times of their alternatives.
    """

    tuning: Tuning
    database: Database
    weights: Mapping[str, float]
    regions: Sequence[Sequence[Alternatives[str]]]
