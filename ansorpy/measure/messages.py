"""The fields of the messages between driver and workers, checked on both sides."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ansorpy.measure.result import TrialKind
from ansorpy.measure.timing import TimingPolicy
from ansorpy.target import Target

__all__ = ["BuildRequest", "MeasureRequest", "Measured", "OpenRequest", "RetimeRequest"]


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OpenRequest(_Message):
    """Fields of ``open``; blobs: the definition as JSON, then the reference outputs if known."""

    seed: int
    threads: int
    cold_bytes: int
    check_points: int


class MeasureRequest(_Message):
    """Fields of ``measure``; ``built`` is the header of the blobs.

    ``stated_error``: what the candidate's definition may lose beyond the task's own tolerance.
    """

    built: dict[str, object]
    stated_error: float = Field(ge=0)
    incumbent_s: float | None
    policy: TimingPolicy


class RetimeRequest(_Message):
    """Fields of ``retime``: several candidates, a header and a number of blobs each."""

    built: list[dict[str, object]]
    blobs: list[int]
    rounds: int
    policy: TimingPolicy


class BuildRequest(_Message):
    """Fields of a ``build`` message; its blobs are the definition and the steps, as JSON."""

    target: Target
    symbol: str


class Measured(_Message):
    """Fields of the answer to ``measure``; ``max_error`` is None when it is infinite.

    ``check_s`` of the ``run_s`` seconds went by before the result was known to be right.
    """

    kind: TrialKind
    reason: str
    seconds: tuple[float, ...]
    max_error: float | None
    run_s: float = Field(ge=0)
    check_s: float = Field(ge=0)
