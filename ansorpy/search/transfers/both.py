"""The default transfer source: the task's own trials and those of other tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.search.population import Candidate
from ansorpy.search.transfer import TransferContext
from ansorpy.search.transfers.schedule_reuse import ScheduleReuse

__all__ = ["Both"]


@dataclass(frozen=True)
class Both:
    """Resumes from the task's own trials, and begins with schedules of similar tasks."""

    similar: ScheduleReuse = ScheduleReuse()
    own: ClassVar[bool] = True
    others: ClassVar[bool] = True

    def first(self, context: TransferContext) -> Sequence[Candidate]:
        return self.similar.first(context)
