"""What the jobs of a study found: one JSON line each, kept for a version of the code and a machine.

Lines are only appended, so a study that is stopped loses nothing, and several versions of the code
and several machines can share a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy.config import available_cores
from ansorpy.errors import ForeignFile
from ansorpy.target import machine_name
from benchmarks.common.compared import code_version

__all__ = ["Conditions", "Outcome", "Outcomes"]

Value = Mapping[str, Any]


@dataclass(frozen=True)
class Conditions:
    """Under which outcomes can be compared: the code, and the machine."""

    code: str
    machine: str

    @staticmethod
    def today() -> Conditions:
        """The code that runs, on this machine."""
        return Conditions(code_version(), f"{machine_name()}, {available_cores()} cores")


class Outcome(BaseModel):
    """What one job found.

    Args:
        value: What it returned; None if it failed, for the reason in ``error``.
        seconds: How long it took.
        others: Cores that other processes kept busy meanwhile, a mean; 0 for what times nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    key: str
    code: str
    machine: str
    date: str
    seconds: float
    others: float
    value: dict[str, Any] | None
    error: str = ""

    @staticmethod
    def now(key: str, conditions: Conditions, **found: Any) -> Outcome:
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        return Outcome(
            key=key, code=conditions.code, machine=conditions.machine, date=date, **found
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of its key, which slashes separate."""
        return tuple(self.key.split("/"))


class Outcomes:
    """The outcomes in a file under given conditions, by the keys of their jobs.

    Args:
        earlier: Versions of the code whose outcomes on this machine count where a job has none of
            *conditions*, or of a version that stands before them.

    Raises:
        ForeignFile: The file has other lines than outcomes.
    """

    def __init__(self, path: Path, conditions: Conditions, earlier: Sequence[str] = ()) -> None:
        self.path, self.conditions = path, conditions
        self.others: set[Conditions] = set()
        self._found: dict[str, Outcome] = {}
        order = (conditions.code, *earlier)
        for outcome in _read(path):
            found = Conditions(outcome.code, outcome.machine)
            if found.machine != conditions.machine or found.code not in order:
                self.others.add(found)
                continue
            before = self._found.get(outcome.key)
            if before is None or order.index(found.code) <= order.index(before.code):
                self._found[outcome.key] = outcome

    def add(self, outcome: Outcome) -> None:
        """Append *outcome* to the file; it replaces an earlier one of its job."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(outcome.model_dump_json() + "\n")
        self._found[outcome.key] = outcome

    def forget(self, keys: Iterable[str]) -> None:
        """Act as if these jobs had not run; the file keeps their outcomes until they run again."""
        for key in keys:
            self._found.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self._found.values())

    def of(self, keys: Iterable[str]) -> list[Outcome]:
        """The outcomes of these jobs, of those that have one."""
        return [self._found[key] for key in keys if key in self._found]

    def value(self, key: str) -> Value | None:
        """What the job *key* found; None if it has not run, or failed."""
        outcome = self._found.get(key)
        return None if outcome is None else outcome.value

    def values(self, *kind: str) -> dict[tuple[str, ...], Value]:
        """What the jobs found whose keys begin with the parts *kind*, by the rest of their keys."""
        n = len(kind)
        return {
            outcome.parts[n:]: outcome.value
            for outcome in self
            if outcome.parts[:n] == kind and outcome.value is not None
        }

    def failures(self, *kind: str) -> dict[str, str]:
        """The reasons of the jobs that failed, by key."""
        n = len(kind)
        return {o.key: o.error for o in self if o.value is None and o.parts[:n] == kind}


def _read(path: Path) -> Iterator[Outcome]:
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            if line:
                yield Outcome.model_validate_json(line)
        except ValidationError as error:
            if number == len(lines):
                return  # the writer was stopped in the middle of its last line
            raise ForeignFile(f"line {number} of {path} is not an outcome: {error}") from None
