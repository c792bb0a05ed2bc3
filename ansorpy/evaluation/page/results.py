"""Results of other verbs that the page shows: files of ``bench -o`` and ``verify --json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ansorpy.errors import ForeignFile

__all__ = ["BenchResult", "VerifyResult", "read_bench", "read_verified"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class _Engine(_Part):
    median_ms: float = Field(gt=0)
    bursts_ms: tuple[float, float]
    version: str


class _Call(_Part):
    name: str
    inside_s: float = Field(ge=0)
    least_s: float = Field(ge=0)
    bound: str


class _Machine(_Part):
    cpu: str
    cores: int


class BenchResult(_Part):
    """A network timed next to other engines, at one size; ``calls`` with ``bench --profile``."""

    model: str
    threads: int
    machine: _Machine
    engines: dict[str, _Engine]
    calls: tuple[_Call, ...] = ()


class _Output(_Part):
    name: str
    error: float | None
    tolerance: float
    ok: bool


class VerifyResult(_Part):
    """A network's outputs compared with those of another engine."""

    model: str
    against: str
    ok: bool
    outputs: tuple[_Output, ...]


R = TypeVar("R", bound=BaseModel)


def read_bench(source: Path | Mapping[str, object]) -> BenchResult:
    """The result that ``bench -o`` wrote to a file, or as Python values.

    Raises:
        ForeignFile: It is not such a result, or one of several sizes.
    """
    return _read(BenchResult, source, "a result of bench at one size", "bench NET -o FILE")


def read_verified(source: Path | Mapping[str, object]) -> VerifyResult:
    """The result that ``verify --json`` printed, in a file or as Python values.

    Raises:
        ForeignFile: It is not such a result.
    """
    return _read(VerifyResult, source, "a result of verify", "verify NET --json > FILE")


def _read(kind: type[R], source: Path | Mapping[str, object], what: str, command: str) -> R:
    hint = f"write one: ansorpy {command}"
    try:
        if isinstance(source, Path):
            return kind.model_validate_json(source.read_bytes())
        return kind.model_validate(source)
    except OSError as error:
        raise ForeignFile.unreadable(source, error, hint=hint) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the text"
        name = source if isinstance(source, Path) else "the value"
        raise ForeignFile(f"{name} is not {what}: {place}: {first['msg']}", hint=hint) from None
