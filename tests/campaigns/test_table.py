"""Tables of what a campaign measured."""

from __future__ import annotations

from collections import Counter

from tests.campaigns.campaign import Outcome, Tally, Worst
from tests.campaigns.table import tables


def test_measures_are_rows_and_those_with_a_column_are_crossed() -> None:
    worst = {
        "exp": Worst(1.0625, "at 3"),
        "sum; 2^0": Worst(0.0, ""),
        "sum; 2^4": Worst(1.5, ""),
    }
    outcome = Outcome("numbers", 3, 2, Tally(Counter({"exp": 4096}), worst), [], 7.0)
    assert tables(outcome).split("\n") == [
        "`python -m tests.campaigns numbers --seed 3`: 2 cases in 7 s, 0 failed.",
        "",
        "|  | tried | largest |  |",
        "| --- | --- | --- | --- |",
        "| exp | 4,096 | 1.062 | at 3 |",
        "",
        "|  | 2^0 | 2^4 |",
        "| --- | --- | --- |",
        "| sum | 0 | 1.5 |",
    ]
