"""Modules import only from lower layers (docs/concepts/architecture.md), and never in a circle."""

from __future__ import annotations

import logging.config

import grimp
import networkx as nx
import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.sources import PACKAGE


def test_imports_go_down(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layers stand in ``pyproject.toml``; what breaks them is printed."""
    # It would disable the loggers that exist, which other tests listen to.
    monkeypatch.setattr(logging.config, "dictConfig", lambda config: None)
    status = lint_imports(str(PACKAGE.parent / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """Imports for types only, which never run, are left out."""
    graph = grimp.build_graph("ansorpy", exclude_type_checking_imports=True, cache_dir=None)
    imports = nx.DiGraph(
        (module, imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    )
    assert [sorted(c) for c in nx.strongly_connected_components(imports) if len(c) > 1] == []
