"""The documentation is true: examples in docstrings run, and what pages name exists."""

from __future__ import annotations

import doctest
import importlib
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer

import ansorpy
from ansorpy import errors
from ansorpy.cli.main import VERBS
from ansorpy.config import KNOBS
from ansorpy.measure.records.schema import IN_MEMORY, connect
from tests.api.display.events import LARGE, SMALL, planned, report

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def _modules_with_examples() -> list[str]:
    package = Path(ansorpy.__file__).parent
    return [
        ".".join(("ansorpy", *path.relative_to(package).with_suffix("").parts))
        for path in sorted(package.rglob("*.py"))
        if ">>> " in path.read_text() and path.name != "__init__.py"
    ]


@pytest.mark.parametrize("name", _modules_with_examples())
def test_examples_of_a_module(name: str) -> None:
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=FLAGS)
    assert tried > 0 and failed == 0


SUPPORT = ROOT / "docs" / "reference" / "onnx_support.md"
"""A table that is made, to look things up in."""


def test_every_page_fits_and_is_in_the_site() -> None:
    listed = re.findall(r"[\w/]+\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(listed) == sorted(str(path.relative_to(ROOT / "docs")) for path in DOCS)
    for path in DOCS:
        assert len(path.read_text().splitlines()) <= 200 or path == SUPPORT, path.name


def _anchors(page: Path) -> set[str]:
    """What the site calls the headings of *page*."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    words = (
        re.sub(r"[^\w\s-]", "", heading, flags=re.ASCII).lower()
        for heading in re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    )
    return {re.sub(r"[-\s]+", "-", each) for each in words}


def _is_dead(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return not target.exists() or (bool(anchor) and anchor not in _anchors(target))


def _dead_links(page: Path) -> list[str]:
    """The links of *page* to files, and to headings of pages, that do not exist."""
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    return [link for link in links if "://" not in link and _is_dead(page, link)]


def test_links_lead_somewhere() -> None:
    for path in (*ROOT.glob("*.md"), *DOCS):
        assert _dead_links(path) == [], path.name


def test_dead_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Its `own` heading\n\n```sh\n# code\n```\n[a](#its-own-heading) [b](#code) "
        "[c](other.md#its-own-heading) [d](page.md#other) [e](https://example.com/#none)\n"
    )
    assert _dead_links(page) == ["#code", "other.md#its-own-heading", "page.md#other"]


def test_modules_named_exist() -> None:
    package = Path(ansorpy.__file__).parent
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS):
        for name in re.findall(r"`([a-z_]+/[\w/]+\.py)`", path.read_text()):
            found = [(root / name).exists() for root in (ROOT, package, ROOT / "tests")]
            assert any(found), f"{path.name}: {name}"


def test_every_environment_variable_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "environment.md").read_text()
    documented = set(re.findall(r"^\| `(ANSORPY_\w+)`", text, flags=re.MULTILINE))
    assert documented == {knob.name for knob in KNOBS}


def test_every_public_name_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "api.md").read_text()
    documented = re.findall(r"^::: ansorpy\.(\w+)$", text, flags=re.MULTILINE)
    assert sorted(documented) == sorted(ansorpy.__all__)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_every_option_is_documented(verb: Callable[..., Any]) -> None:
    app = typer.Typer(add_completion=False)
    app.command()(verb)
    options = {name for param in typer.main.get_command(app).params for name in param.opts}
    text = (ROOT / "docs" / "reference" / "cli.md").read_text()
    documented = set(re.findall(r"(?<=[`\[ ])--?[a-z][a-z-]*", text))
    assert {name for name in options if name.startswith("-")} <= documented


def test_files_named_in_pages_exist() -> None:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS):
        for name in re.findall(r"`([\w./]+/[\w.]+\.(?:py|md))`", path.read_text()):
            places = (ROOT / name, ROOT / "ansorpy" / name, path.parent / name)
            assert any(p.exists() for p in places), f"{path.name}: {name}"


def test_pictures_are_those_that_the_script_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """``python docs/_site/pictures.py`` writes them; a page shows each, and none is large."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    pages = "".join(path.read_text() for path in DOCS)
    for name, drawn in importlib.import_module("pictures").drawn().items():
        assert (ROOT / "docs" / "pictures" / name).read_text() == drawn, name
        assert len(drawn) < 20_000 and f"pictures/{name})" in pages, name


def test_the_picture_of_a_terminal_is_drawn_when_it_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``python docs/_site/terminal.py`` draws once, at its share of the budget."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    drawing = importlib.import_module("terminal")
    picture = drawing.Picture("ansorpy compile net.onnx", width=90, rows=5, at=0.5)
    picture(planned(tmp_path / "t.db", trials=8))
    picture(report(total_trials=4, trial_limit=8, best_s=2e-3))
    assert not picture.svg, "a task has no program yet"
    picture(report(large=False, total_trials=5, trial_limit=8, best_s=1e-3, total_s=5e-3))
    drawn = picture.svg
    assert drawn.startswith("<svg") and LARGE.name in drawn and SMALL.name in drawn
    picture(report(total_trials=6, trial_limit=8, best_s=1e-3, total_s=4e-3))
    assert picture.svg == drawn


def test_messages_with_remedies_exist() -> None:
    """Those of the page, ``...`` standing for what differs, occur in the package's text."""
    package = Path(ansorpy.__file__).parent
    text = "".join(path.read_text() for path in package.rglob("*.py"))
    joined = re.sub(r'"\s*\n\s*f?"', "", text)
    page = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text()
    tables = re.findall(r"^\| message \|.*\n.*\n((?:\|.*\n)+)", page, flags=re.MULTILINE)
    cells = [row.split("|")[1] for table in tables for row in table.splitlines()]
    messages = [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]
    assert len(messages) > 10
    for message in messages:
        for part in message.split("..."):
            assert part.strip(" ,") in joined, message


PART_FOLDERS = {
    "strategy": "strategies", "selector": "selectors", "cost_model": "cost_models",
    "scheduler": "schedulers", "transfer": "transfers",
}  # fmt: skip


@pytest.mark.parametrize("kind", PART_FOLDERS)
def test_every_part_has_a_page_and_is_listed_with_its_sentence(kind: str) -> None:
    lines = (ROOT / "docs" / "parts" / "index.md").read_text().splitlines()
    for name, sentence in ansorpy.PARTS[kind].descriptions().items():
        page = f"{PART_FOLDERS[kind]}/{name}.md"
        assert (ROOT / "docs" / "parts" / page).exists()
        assert f"| [{name}]({page}) | {sentence} |" in lines


def test_every_exit_code_is_documented() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    codes = {kind.exit_code for kind in kinds if hasattr(kind, "exit_code")}
    text = (ROOT / "docs" / "reference" / "cli.md").read_text()
    table = text[text.index("| code | meaning |") :]
    assert set(map(int, re.findall(r"^\| (\d+) \|", table, flags=re.MULTILINE))) == {0, *codes}


def test_every_table_of_a_database_is_documented() -> None:
    with closing(connect(IN_MEMORY)) as made:
        tables = made.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    text = (ROOT / "docs" / "reference" / "database.md").read_text()
    assert sorted(re.findall(r"^\| `(\w+)`", text, flags=re.MULTILINE)) == sorted(
        n for [n] in tables
    )
