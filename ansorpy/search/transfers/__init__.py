"""Transfer sources, one per file; to add one, add a line to the table."""

from __future__ import annotations

from ansorpy.registry import Registry
from ansorpy.search.transfer import TransferSource

__all__ = ["TRANSFERS"]

TRANSFERS: Registry[TransferSource] = Registry(
    "transfer source",
    {
        "both": "ansorpy.search.transfers.schedule_reuse:Both",
        "history_best": "ansorpy.search.transfers.history_best:HistoryBest",
        "schedule_reuse": "ansorpy.search.transfers.schedule_reuse:ScheduleReuse",
        "momentum": "ansorpy.search.transfers.momentum:Momentum",
        "none": "ansorpy.search.transfers.none:NoTransfer",
    },
    TransferSource,
)
