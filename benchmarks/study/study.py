"""A study: stages of jobs, and the page that its outcomes make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Conditions, Outcome, Outcomes
from benchmarks.study.plots import Spec, svg

__all__ = ["Section", "StudySettings", "Stage", "Study", "pages"]

_BUSY = 0.25
"""Cores that other processes may keep busy while programs are timed."""


@dataclass(frozen=True)
class StudySettings:
    """What a call of the command asks for; the keys of jobs name the limits.

    Args:
        only: Contestants; empty: all that are registered.
        on: Subjects (spaces, operators, networks); empty: those of the stage.
        seconds: Limit of tuning an operator; ``network_seconds`` that of a network.
        trials: Trials of tuning where trials limit it.
        folder: Where records and files of networks are kept.
        spaces: Folder of recorded spaces.
    """

    only: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    seeds: int | None = None
    seconds: float | None = None
    network_seconds: float | None = None
    trials: int | None = None
    threads: int = 1
    folder: Path = Path("build")
    spaces: Path = Path("spaces")

    def subjects(self, usual: Sequence[str]) -> Sequence[str]:
        """The subjects of a stage whose usual ones are *usual*."""
        return self.on or usual


@dataclass(frozen=True)
class Section:
    """A part of the page: what was learnt, tables, and pictures by name.

    Text and tables are Markdown; without text, there are no results.
    """

    text: str = ""
    tables: str = ""
    pictures: Mapping[str, Spec] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """A part of a study.

    Args:
        help: What it measures, as a sentence; the page begins its section with it.
        jobs: The jobs that settings ask for, in order.
        section: What the outcomes show.
    """

    name: str
    title: str
    help: str
    jobs: Callable[[StudySettings], Sequence[Job]]
    section: Callable[[StudySettings, Outcomes], Section]


@dataclass(frozen=True)
class Study:
    """All of it.

    Args:
        name: ``python -m benchmarks.NAME`` runs it.
        title: The page's heading, and ``about`` what follows it.
        page: Where the page is written; its pictures are written to ``pictures`` beside its folder.
        summary: What the page says before its sections.
        tables: A page of its own for the tables; None: they stand below their pictures.
    """

    name: str
    title: str
    about: str
    page: Path
    stages: tuple[Stage, ...]
    summary: Callable[[StudySettings, Outcomes], str] = lambda settings, outcomes: ""
    tables: Path | None = None

    @property
    def command(self) -> str:
        return f"python -m benchmarks.{self.name}"

    @property
    def pictures(self) -> Path:
        """The folder of the page's pictures."""
        return self.page.parent.parent / "pictures"


def pages(study: Study, settings: StudySettings, outcomes: Outcomes) -> dict[Path, str]:
    """What the report of *study* writes: the page, that of its tables, and the pictures."""
    written: dict[Path, str] = {}
    head = [study.about, _provenance(study, outcomes)]
    parts, tables = [f"# {study.title}", *head], [f"# {study.title}: tables", *head[1:]]
    if summary := study.summary(settings, outcomes):
        parts.append(summary)
    for stage in study.stages:
        section = stage.section(settings, outcomes)
        parts += [f"## {stage.title}", stage.help]
        if not section.text:
            parts.append(f"No results yet: `{study.command} --stage {stage.name}`.")
            continue
        parts.append(_origin(outcomes.of(job.key for job in stage.jobs(settings))))
        for name, spec in section.pictures.items():
            file = study.pictures / f"{study.name}_{name}.svg"
            written[file] = svg(spec) + "\n"
            parts.append(f"![{stage.title}](../pictures/{file.name})")
        parts.append(section.text)
        if section.tables and study.tables is not None:
            tables += [f"## {stage.title}", section.tables]
        elif section.tables:
            parts.append(section.tables)
    if study.tables is not None:
        parts.append(f"All figures: [tables]({study.tables.name}).")
        written[study.tables] = "\n\n".join(tables) + "\n"
    return written | {study.page: "\n\n".join(parts) + "\n"}


def _provenance(study: Study, outcomes: Outcomes) -> str:
    lines = [f"Written by `{study.command} --stage report`; not by hand."]
    if not list(outcomes):
        lines.append("There are no results of this machine and this code yet.")
    else:
        lines.append(f"{outcomes.conditions.machine}.")
    lines += _others(outcomes.others)
    return "\n".join(lines)


def _origin(found: Sequence[Outcome]) -> str:
    """With which code, and when, a section's outcomes were found."""
    days = sorted({outcome.date for outcome in found})
    codes = sorted({outcome.code for outcome in found})
    when = f"{days[0]} to {days[-1]}" if len(days) > 1 else "".join(days)
    said = f"ansorpy {', '.join(codes)}; {len(found)} jobs, {when}."
    busy = sum(outcome.others > _BUSY for outcome in found)
    if busy:
        said += f" {busy} of them ran beside other processes: do not cite their figures."
    return said


def _others(found: set[Conditions]) -> Iterator[str]:
    for other in sorted(found, key=lambda one: (one.code, one.machine)):
        yield f"There are also results of {other.code} (`--code`) on {other.machine}."
