"""A study: stages of jobs, and the page that its outcomes make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.common.cells import markdown
from benchmarks.common.pages import between_marks, marked
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Outcome, Outcomes
from benchmarks.study.plots import Spec, svg

__all__ = ["Bar", "Section", "Stage", "Study", "StudySettings", "pages"]

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
class Bar:
    """What a stage is asked to show, and what it found."""

    what: str
    asked: str
    found: str
    is_met: bool


@dataclass(frozen=True)
class Section:
    """A part of the page: what was learnt, bars, tables, and pictures by name.

    Text and tables are Markdown; without text, there are no results.
    """

    text: str = ""
    tables: str = ""
    pictures: Mapping[str, Spec] = field(default_factory=dict)
    bars: Sequence[Bar] = ()


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
        tables: A page of its own for the tables; None: they stand below their pictures.
    """

    name: str
    title: str
    about: str
    page: Path
    stages: tuple[Stage, ...]
    tables: Path | None = None

    @property
    def command(self) -> str:
        return f"python -m benchmarks.{self.name}"

    @property
    def pictures(self) -> Path:
        """The folder of the page's pictures."""
        return self.page.parent.parent / "pictures"

    def picture(self, name: str) -> Path:
        """The file of the picture *name* of a section."""
        return self.pictures / f"{self.name}_{name}.svg"


def pages(study: Study, settings: StudySettings, outcomes: Outcomes) -> dict[Path, str]:
    """What the report of *study* writes: the page, that of its tables, and the pictures.

    A stage without outcomes keeps the section that is published.
    """
    written: dict[Path, str] = {}
    source = f"Written by `{study.command} --stage report`; not by hand."
    parts = [f"# {study.title}", study.about, source]
    tables = [f"# {study.title}: tables", source]
    before, tables_before = _text(study.page), _text(study.tables)
    for stage in study.stages:
        mark = f"benchmarks.{study.name} {stage.name}"
        section = stage.section(settings, outcomes)
        if section.text:
            found = outcomes.of(job.key for job in stage.jobs(settings))
            shown, figures = _shown(study, stage, section, found), section.tables
            drawn = {study.picture(name): svg(spec) for name, spec in section.pictures.items()}
            written |= {path: f"{text}\n" for path, text in drawn.items()}
        else:
            shown, figures = between_marks(before, mark), between_marks(tables_before, mark)
        nothing = f"No results yet: `{study.command} --stage {stage.name}`."
        parts += [f"## {stage.title}", stage.help, marked(shown, mark) if shown else nothing]
        if figures and study.tables is not None:
            tables += [f"## {stage.title}", marked(figures, mark)]
    if study.tables is not None:
        parts.append(f"All figures: [tables]({study.tables.name}).")
        written[study.tables] = "\n\n".join(tables) + "\n"
    return written | {study.page: "\n\n".join(parts) + "\n"}


def _text(page: Path | None) -> str:
    return page.read_text() if page is not None and page.exists() else ""


def _shown(study: Study, stage: Stage, section: Section, found: Sequence[Outcome]) -> str:
    """The section of *stage* on the page."""
    parts = [_origin(found)]
    parts += [
        f"![{stage.title}](../pictures/{study.picture(name).name})" for name in section.pictures
    ]
    parts.append(section.text)
    if section.bars:
        rows = [(b.what, b.asked, b.found, "met" if b.is_met else "missed") for b in section.bars]
        parts.append(markdown(("what", "asked", "found", ""), rows))
    if section.tables and study.tables is None:
        parts.append(section.tables)
    return "\n\n".join(parts)


def _origin(found: Sequence[Outcome]) -> str:
    """Where, with which code, and when a section's outcomes were found."""
    machines = sorted({outcome.machine for outcome in found})
    codes = sorted({outcome.code for outcome in found})
    days = sorted({outcome.date for outcome in found})
    when = f"{days[0]} to {days[-1]}" if len(days) > 1 else "".join(days)
    said = f"{'; '.join(machines)}; ansorpy {', '.join(codes)}; {len(found)} jobs, {when}."
    busy = sum(outcome.others > _BUSY for outcome in found)
    if busy:
        said += f" {busy} of them ran beside other processes: do not cite their figures."
    return said
