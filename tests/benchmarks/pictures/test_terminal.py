"""The picture of a search is drawn once, when its share of the budget is spent."""

from __future__ import annotations

from pathlib import Path

from benchmarks.pictures.terminal import Picture
from tests.api.display.events import LARGE, SMALL, planned, report


def test_a_picture_is_drawn_when_it_is_due(tmp_path: Path) -> None:
    picture = Picture("ansorpy compile net.onnx", width=90, rows=5, at=0.5)
    picture(planned(tmp_path / "t.db", trials=8))
    picture(report(total_trials=4, trial_limit=8, best_s=2e-3))
    assert not picture.svg, "a task has no program yet"
    picture(report(large=False, total_trials=5, trial_limit=8, best_s=1e-3, total_s=5e-3))
    drawn = picture.svg
    assert drawn.startswith("<svg") and LARGE.name in drawn and SMALL.name in drawn
    picture(report(total_trials=6, trial_limit=8, best_s=1e-3, total_s=4e-3))
    assert picture.svg == drawn
