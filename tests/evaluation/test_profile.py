"""Tables of a network's calls: their times, and what limits them."""

from __future__ import annotations

from ansorpy.cost.analytic.limits import Limits
from ansorpy.evaluation.profile import CallTime, bounds_table, profile_table

MOVES, MULTIPLIES, STARTS = Limits(3e-6, 1e-6), Limits(1e-6, 5e-6, 2e-6), Limits(0, 1e-7, 1.5e-6)


def test_calls_too_short_for_the_clock_have_no_share() -> None:
    table = profile_table(
        [CallTime("a", 0.0, None, Limits(0, 0)), CallTime("b", 2e-6, 1e-6, Limits(1e-6, 0))]
    )
    assert [row[-2:] for row in table.rows] == [
        ("50%", "100.0%"), ("", "0.0%"), ("50%", "100.0%")
    ]  # fmt: skip
    assert profile_table([CallTime("a", 0.0, 0.0, Limits(0, 0))]).rows[-1][-2:] == ("", "")


def test_each_call_names_what_limits_it() -> None:
    calls = [
        CallTime("copy", 6e-6, 5e-6, MOVES, 1), CallTime("matmul", 1e-5, None, MULTIPLIES, 2),
        CallTime("relu", 3e-6, 3e-6, STARTS, 1), CallTime("add", 1e-6, 1e-6, STARTS, 1),
    ]  # fmt: skip
    assert (
        profile_table(calls, "net", "us predicted").text()
        == """\
net
kernel  calls  kernels  us predicted  us alone  us at least  bound by    of roofline   share
matmul      1        2          10.0                    5.0  arithmetic          50%   50.0%
copy        1        1           6.0       5.0          3.0  memory              50%   30.0%
relu        1        1           3.0       3.0          1.5  launches            50%   15.0%
add         1        1           1.0       1.0          1.5  launches           150%    5.0%
all         4        5          20.0                   11.0                      55%  100.0%"""
    )
    assert (
        bounds_table(calls).text()
        == """\
bound by    calls  kernels    us  us at least  share
memory          1        1   6.0          3.0  30.0%
arithmetic      1        2  10.0          5.0  50.0%
launches        2        2   4.0          3.0  20.0%"""
    )
    assert calls[1].to_dict("predicted_s") == {
        "name": "matmul", "predicted_s": 1e-5, "alone_s": None, "least_s": 5e-6, "memory_s": 1e-6,
        "compute_s": 5e-6, "launch_s": 2e-6, "bound": "arithmetic", "kernels": 2,
    }  # fmt: skip


def test_calls_of_a_cpu_have_no_kernels_to_count() -> None:
    calls = [CallTime("copy", 6e-6, 5e-6, MOVES)]
    for table in (profile_table(calls), bounds_table(calls)):
        assert "kernels" not in table.heading
        assert {len(row) for row in table.rows} == {len(table.heading)}


def test_calls_of_one_kernel_are_added_up() -> None:
    calls = [CallTime("copy", s, 5e-6, MOVES) for s in (6e-6, 8e-6)] + [
        CallTime("x", 1e-6, 0, MOVES)
    ]
    assert profile_table(calls).rows[0] == (
        "copy", "2", "14.0", "10.0", "6.0", "memory", "43%", "93.3%",
    )  # fmt: skip
