"""Pictures of a page as Vega-Lite specifications, and their drawing as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansorpy.evaluation.page.write import demand_charts
from benchmarks.study.comparison import Comparison

__all__ = ["Spec", "curves", "grouped_bars", "standings", "svg"]

Spec = Mapping[str, Any]

_WIDTH = 560
_COLOUR = {
    "field": "name", "type": "nominal", "title": None, "sort": None,
    "scale": {"scheme": "tableau20"},
}  # fmt: skip
_CONFIG = {"view": {"stroke": None}, "axis": {"labelLimit": 240}, "background": "white"}


def svg(spec: Spec) -> str:
    """Draw *spec*.

    Raises:
        MissingDependency: The library that draws charts is not installed.
    """
    demand_charts()
    import vl_convert

    return str(vl_convert.vegalite_to_svg(dict(spec)))


def standings(found: Comparison, unit: str, label: Mapping[str, str]) -> Spec:
    """A row per contestant, the best first: its mean, and a line for the interval."""
    rows = [
        {"name": label[s.name], "mean": s.mean, "low": s.low, "high": s.high}
        for s in found.standings
    ]
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    x = {
        "field": "mean", "type": "quantitative", "title": unit,
        "scale": {"type": "log", "zero": False, "nice": False},
    }  # fmt: skip
    return {
        "width": _WIDTH, "height": {"step": 18}, "config": _CONFIG, "data": {"values": rows},
        "encoding": {"y": y},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.4},
             "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 60}, "encoding": {"x": x}},
        ],
    }  # fmt: skip


def curves(
    rows: Sequence[Mapping[str, Any]], over: str, unit: str, *, is_log: bool = False
) -> Spec:
    """Steps of ``value`` over ``at``, a line for each ``name``, a facet for each ``subject``."""
    return {
        "config": _CONFIG, "data": {"values": list(rows)}, "columns": 2,
        "facet": {"field": "subject", "type": "nominal", "title": None, "sort": None},
        "spec": {
            "width": _WIDTH // 2, "height": 180,
            "mark": {"type": "line", "interpolate": "step-after"},
            "encoding": {
                "x": {"field": "at", "type": "quantitative", "title": over},
                "y": {"field": "value", "type": "quantitative", "title": unit,
                      "scale": {"type": "log" if is_log else "linear", "zero": False,
                                "nice": False}},
                "color": _COLOUR,
            },
        },
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }  # fmt: skip


def grouped_bars(rows: Sequence[Mapping[str, Any]], unit: str) -> Spec:
    """A group of bars for each ``subject``, a bar of height ``value`` for each ``name`` in it."""
    return {
        "config": _CONFIG,
        "data": {"values": list(rows)},
        "height": 180,
        "width": {"step": 14},
        "mark": "bar",
        "encoding": {
            "x": {"field": "subject", "type": "nominal", "title": None, "sort": None},
            "xOffset": {"field": "name", "sort": None},
            "y": {"field": "value", "type": "quantitative", "title": unit},
            "color": _COLOUR,
        },
    }
