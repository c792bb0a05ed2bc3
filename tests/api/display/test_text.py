"""One line says trials, best latency, failures by cause and time left."""

from __future__ import annotations

import io

from ansorpy.api.display.board import Board
from ansorpy.api.display.lines import Lines
from ansorpy.api.display.text import clock, line, reached
from ansorpy.api.events import PeerTimed
from ansorpy.measure.result import TrialKind
from ansorpy.quantities import latency_text
from ansorpy.search.events import Event, Phase
from tests.api.display.events import LARGE, report


def noted(*events: Event) -> Board:
    board = Board()
    for event in events:
        board(event)
    return board


def test_a_full_line() -> None:
    failures = {TrialKind.CRASH: 2, TrialKind.TIMEOUT: 5}
    board = noted(report(total_trials=3, trial_limit=64, best_s=0.0012, total_s=0.5, untuned_s=1.5,
                         left_s=61.4, failures=failures))  # fmt: skip
    assert line(board) == (
        f"trials 3/64  best 500.000 ms (3.00x untuned)  {LARGE.name}: 1.200 ms  "
        "failed 5 timeout, 2 crash  1:01 left"
    )


def test_a_line_before_anything_is_known() -> None:
    assert line(noted(report(total_trials=3))) == f"trials 3  {LARGE.name}: -"


def test_choosing_without_measuring() -> None:
    board = noted(report(phase=Phase.PICKED, total_trials=3, trial_limit=27))
    assert line(board) == "program 3/27 chosen"


def test_what_was_reached() -> None:
    board = noted(report())
    assert reached(board) == "1 of 1 tasks have no measured program"
    board(report(total_s=2e-3, untuned_s=5e-3))
    board(PeerTimed("onnxruntime", 3e-3))
    assert reached(board) == (
        "2.000 ms in kernels, 2.50x as fast as untuned (5.000 ms), "
        "1.50x as fast as onnxruntime (3.000 ms)"
    )


def test_latencies_and_clocks() -> None:
    assert (latency_text(0.0123), latency_text(0.0000123)) == ("12.300 ms", "12.3 us")
    assert (clock(61.4), clock(3725.0), clock(-1.0)) == ("1:01", "1:02:05", "0:00")


def test_lines_come_at_once_then_seldom_and_at_the_end() -> None:
    file, board = io.StringIO(), Board()
    with Lines(board, file) as lines:
        for trials, phase in enumerate([Phase.SEARCHING] * 3 + [Phase.FINISHED]):
            event = report(phase=phase, total_trials=trials)
            board(event)
            lines(event)
    assert [text.split()[1] for text in file.getvalue().splitlines()] == ["0", "3"]
