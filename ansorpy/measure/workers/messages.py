"""Fields of the messages between driver and workers, validated on both sides."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from ansorpy.measure.result import TrialKind
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.target import Target

__all__ = [
    "BuildFailed", "BuildRequest", "KnownProgram", "MeasureRequest", "Measured", "OpenRequest",
    "ReferenceMade", "RetimeRequest", "Retimed",
]  # fmt: skip

Samples = Annotated[tuple[PositiveFloat, ...], Field(min_length=1)]
"""Seconds per call, one number per sample."""


Magnitude = Annotated[float, Field(ge=0)]
"""Median magnitude of an output's elements (:mod:`ansorpy.ir.analysis.magnitude`)."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class OpenRequest(_Message):
    """Fields of ``open``; blobs: the definition as JSON, then the reference outputs if known.

    ``magnitudes``: the magnitudes of the outputs, if known.
    """

    seed: int
    threads: int
    reuse_distance_bytes: int = Field(ge=0)
    check_points: int
    magnitudes: tuple[Magnitude, ...] = ()


class ReferenceMade(_Message):
    """Fields of the answer ``reference``, whose blobs are the outputs.

    ``magnitudes``: the magnitudes of the outputs, if points were checked.
    """

    magnitudes: tuple[Magnitude, ...] = ()


class KnownProgram(_Message):
    """A program of the open task that was timed; ``built`` is the header of its blobs.

    ``seconds``: what a call of it counts as.
    """

    digest: str
    built: dict[str, object]
    seconds: PositiveFloat


class MeasureRequest(_Message):
    """Fields of ``measure``; ``built`` is the header of the blobs, of which there are ``blobs``.

    ``stated_error``: error that the candidate's definition may add to the task's own tolerance.
    ``yardstick``: the program to be timed beside, whose blobs follow.
    """

    built: dict[str, object]
    blobs: int = Field(ge=0)
    stated_error: float = Field(ge=0)
    incumbent_s: float | None
    policy: TimingPolicy
    yardstick: KnownProgram | None = None


class RetimeRequest(_Message):
    """Fields of ``retime``: several candidates, each with a header and a number of blobs.

    ``within_s``: Seconds within which to answer, if need be with fewer rounds.
    """

    built: list[dict[str, object]]
    blobs: list[int]
    within_s: float
    policy: TimingPolicy


class BuildRequest(_Message):
    """Fields of a ``build`` message; its blobs are the definition and the steps, as JSON.

    With ``prefetch``, the program expects its constants outside a core's own caches.
    """

    target: Target
    symbol: str
    prefetch: bool


class BuildFailed(_Message):
    """Fields of the answer ``failed`` to ``build``."""

    kind: TrialKind
    reason: str

    @model_validator(mode="after")
    def _is_failure(self) -> BuildFailed:
        if self.kind not in (TrialKind.LOWER_ERROR, TrialKind.BUILD_ERROR):
            raise ValueError(f"{self.kind.value} is not a build failure")
        return self


class Measured(_Message):
    """Fields of the answer to ``measure``; ``max_error`` is None when it is infinite.

    ``check_s``: the part of ``run_s`` that passed before the result was known to be correct.
    ``is_usable``: whether the process can go on after a candidate that failed while running.
    """

    kind: TrialKind
    reason: str
    seconds: tuple[PositiveFloat, ...]
    max_error: float | None = Field(ge=0)
    run_s: float = Field(ge=0)
    check_s: float = Field(ge=0)
    is_usable: bool = False

    @model_validator(mode="after")
    def _has_times(self) -> Measured:
        if self.kind in (TrialKind.OK, TrialKind.SLOW) and not self.seconds:
            raise ValueError("a program that was timed must have times")
        return self


class Retimed(_Message):
    """Fields of the answer to ``retime``: the samples of each candidate."""

    seconds: tuple[Samples, ...]
