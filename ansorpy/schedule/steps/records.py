"""Steps as JSON: the form of schedules in records and in messages to build workers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ansorpy.errors import ForeignFile
from ansorpy.schedule.steps import (
    annotate,
    carry,
    dot,
    fragments,
    lanes,
    loops,
    mma,
    place,
    shared_tiles,
    storage,
)
from ansorpy.schedule.steps.base import Step

__all__ = ["STEP_CLASSES", "steps_from_json", "steps_to_json"]

STEP_CLASSES = (
    loops.SplitStep,
    loops.FollowSplitStep,
    loops.FollowFusedSplitStep,
    loops.FuseStep,
    loops.ReorderStep,
    lanes.SplitLanesStep,
    annotate.ParallelStep,
    annotate.VectorizeStep,
    annotate.PragmaUnrollStep,
    annotate.UnrollStep,
    annotate.BindStep,
    annotate.ScopeStep,
    annotate.KernelStyleStep,
    annotate.TensorizeStep,
    place.ComputeAtStep,
    place.ReverseComputeAtStep,
    place.ComputeInlineStep,
    place.ComputeRootStep,
    storage.CacheReadStep,
    storage.CacheWriteStep,
    storage.RfactorStep,
    storage.PackStep,
    dot.DotStep,
    mma.MmaStep,
    fragments.HoldStep,
    fragments.QuadsStep,
    fragments.OnesStep,
    carry.CarryStep,
    shared_tiles.BulkStep,
    shared_tiles.PadStep,
    shared_tiles.PipelineStep,
)

_ANY_STEP: Any = functools.reduce(operator.or_, STEP_CLASSES)
_ADAPTER: TypeAdapter[list[Step]] = TypeAdapter(
    list[Annotated[_ANY_STEP, Field(discriminator="kind")]]
)


def steps_to_json(steps: Iterable[Step]) -> str:
    """*steps* as one JSON array; each object's ``kind`` names the primitive."""
    return _ADAPTER.dump_json(list(steps)).decode()


def steps_from_json(text: str | bytes) -> list[Step]:
    """The steps in *text*, validated; raises :class:`ForeignFile` naming the one that is wrong."""
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ForeignFile(
            f"not a recorded schedule: step {where}: {first['msg']}",
            hint="the record was written by another version or is damaged; tune again",
        ) from None
