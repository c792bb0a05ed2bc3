"""Progress says best latency, trials, failures by cause and time left, in plain lines off a TTY."""

from __future__ import annotations

import io

from ansorpy.cli.progress import ProgressDisplay, milliseconds, progress_text
from ansorpy.measure.result import TrialKind
from ansorpy.search.events import Phase, Progress


def _report(**values: object) -> Progress:
    return Progress(**{"phase": Phase.SEARCHING, "task": "conv", "total_trials": 3, **values})  # type: ignore[arg-type]


def test_a_full_line() -> None:
    progress = _report(trial_limit=64, best_s=0.0012, total_s=0.5, left_s=61.4)
    text = progress_text(progress, {TrialKind.CRASH: 2, TrialKind.TIMEOUT: 5})
    assert text == (
        "trials 3/64  best 500.000 ms  conv: 1.200 ms  failed 5 timeout, 2 crash  1:01 left"
    )


def test_a_line_before_anything_is_known() -> None:
    assert progress_text(_report(), {}) == "trials 3  conv: -"


def test_latencies() -> None:
    assert milliseconds(0.0123) == "12.300 ms"
    assert milliseconds(0.0000123) == "12.3 us"


def test_plain_lines_come_on_improvement_only() -> None:
    file = io.StringIO()
    with ProgressDisplay(file) as display:
        display(_report(best_s=0.002))
        display(_report(best_s=0.002))
        display(_report(best_s=0.001))
    lines = file.getvalue().splitlines()
    assert [line.split("conv: ")[1] for line in lines] == ["2.000 ms", "1.000 ms"]


def test_failures_of_all_tasks_add_up() -> None:
    file = io.StringIO()
    with ProgressDisplay(file) as display:
        display(_report(failures={TrialKind.CRASH: 1}))
        display(_report(failures={TrialKind.CRASH: 2}))
        display(_report(task="pool", failures={TrialKind.CRASH: 1, TrialKind.TIMEOUT: 1}))
    assert display.failures == {TrialKind.CRASH: 3, TrialKind.TIMEOUT: 1}


def test_choosing_without_measuring() -> None:
    progress = _report(phase=Phase.PICKED, trial_limit=27)
    assert progress_text(progress, {}) == "program 3/27 chosen: conv"
