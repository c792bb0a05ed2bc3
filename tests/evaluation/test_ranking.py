"""Tables of held-out ranking."""

from __future__ import annotations

from ansorpy.cost.holdout import Judged, Knowing
from ansorpy.cost.metrics import Ranking
from ansorpy.evaluation.ranking import Evaluated, figures, models_table, overall_table

NAN = float("nan")
FOUND = [
    Judged("a", Knowing.NOTHING, 0, 16, Ranking(0.2, 0.4, 0.8, 1.0, 0.5, 0.2)),
    Judged("b", Knowing.NOTHING, 0, 20, Ranking(NAN, 0.2, 0.6, 0.9, 0.5, 0.2)),
    Judged("a", Knowing.OWN, 8, 16, Ranking(0.5, 0.6, 1.0, 1.0, 0.5, 0.2)),
    Judged("b", Knowing.OWN, 8, 20, Ranking(NAN, 0.4, 0.9, 1.0, 0.5, 0.2)),
    Judged("a", Knowing.OWN, 32, 16, Ranking(0.7, 0.8, 1.0, 1.0, 0.5, 0.2)),
]


def test_means_are_over_the_same_tasks_for_every_model() -> None:
    rows = {row[:2]: row[2:] for row in overall_table(FOUND).rows}
    assert rows["2 tasks", "analytic"] == ("0.200", "0.300", "0.700", "0.950")
    assert rows["2 tasks", "boosted, first 8 too"][1] == "0.500"
    assert rows["1 tasks", "analytic"][1] == "0.400"
    assert rows["1 tasks", "boosted, first 32 too"][0] == "0.700"
    assert ("1 tasks", "boosted, first 8 too") not in rows


def test_figures_are_plain_json() -> None:
    first, second, *_ = figures(FOUND)
    assert first["model"] == "analytic" and first["correlation"] == 0.2
    assert second["correlation"] is None and second["held_out"] == 20


def test_models_are_compared_on_the_same_tasks() -> None:
    of = [("one", 0.5), ("one", NAN), ("two", 0.25)]
    found = [
        Evaluated(name, "a", 10, Ranking(value, 1.0, 1.0, 1.0, 0.75, 0.125)) for name, value in of
    ]
    table = models_table(found, "title")
    assert table.rows[0] == ("one", "2", "20", "0.500", "1.000", "1.000", "1.000", "0.750", "0.125")
    assert table.rows[1][:4] == ("two", "1", "10", "0.250")
    assert found[1].to_dict()["correlation"] is None and found[0].to_dict()["pairs"] == 0.75
