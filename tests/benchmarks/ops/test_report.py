from __future__ import annotations

from benchmarks.ops.report import (
    calls_table,
    cases_table,
    document,
    groups_table,
    providers_table,
    speedup_table,
)
from benchmarks.ops.result import Run
from tests.benchmarks.ops.results import GEMM, NORM, result

RESULTS = (
    result(GEMM, 1, ansorpy=0.5, onnxruntime=2.0, torch=1.0),
    result(GEMM, 2, ansorpy=0.5, onnxruntime=4.0, torch=4.5),
    result(NORM, 1, ansorpy=12.5, onnxruntime=6.25, torch=100.0),
    result(NORM, 2, failures={"ansorpy": "no program"}, torch=1.0),
)


def test_cases() -> None:
    table = cases_table(RESULTS)
    assert table.heading == (
        "case", "threads", "ansorpy ms", "onnxruntime ms", "torch ms", "ratio", "roofline ms",
        "share", "with fork", "algorithm",
    )  # fmt: skip
    assert table.rows == (
        (GEMM.name, "1", "0.5000", "2.000", "1.000", "2.00", "0.2500", "50%", "60%", "direct"),
        (GEMM.name, "2", "0.5000", "4.000", "4.500", "8.00", "0.2500", "50%", "60%", "direct"),
        (NORM.name, "1", "12.50", "6.250", "100.00", "0.50", "0.2500", "2%", "2%", "direct"),
        (NORM.name, "2", "failed", "", "1.000", "", "0.2500", "", "", "direct"),
    )


def test_groups_have_geometric_means_and_the_least_ratio() -> None:
    assert groups_table(RESULTS).rows == (
        ("GMM", "1", "compute", "2.00", "2.00", "50%", "8.00", "8.00", "50%"),
        ("LN", "1", "compute", "0.50", "0.50", "2%", "", "", ""),
        ("all", "2", "compute", "1.00", "0.50", "10%", "8.00", "8.00", "50%"),
    )


def test_each_case_takes_its_fastest_provider() -> None:
    table = providers_table(RESULTS)
    assert table.heading[-1] == "ours / fastest"
    assert table.rows == (
        ("ansorpy", "generated for the case", "1", "1", "2", "1.00"),
        ("onnxruntime", "MLAS", "1", "1", "2", "2.00"),
        ("torch", "oneDNN and MKL", "1", "0", "2", ""),
        ("fastest of each", "", "1", "2", "2", "1.41"),
        ("ansorpy", "generated for the case", "2", "1", "1", "1.00"),
        ("onnxruntime", "MLAS", "2", "0", "1", ""),
        ("torch", "oneDNN and MKL", "2", "0", "1", ""),
        ("fastest of each", "", "2", "1", "1", "1.00"),
    )
    assert [r.provider for r in RESULTS] == ["ansorpy", "ansorpy", "onnxruntime", "torch"]
    slow = result(GEMM, 1, ansorpy=9.0, openvino=1.0)
    assert slow.provider == "openvino" and result(GEMM, 1).provider is None


def test_calls() -> None:
    table = calls_table([result(GEMM, 2, ansorpy=0.0006, torch=0.0071)])
    assert table.rows == (("2 thr", "0.6", "7.1"),)


def test_speedup_leaves_out_what_was_not_run_before_or_failed() -> None:
    earlier = [
        result(GEMM, 1, ansorpy=1.0),
        result(GEMM, 2, ansorpy=0.25),
        result(NORM, 2, ansorpy=3.0),
    ]
    assert speedup_table(RESULTS, earlier).rows == (
        ("GMM", "2", "1.00", "0.50", "2.00"),
        ("LN", "0", "", "", ""),
        ("all", "2", "1.00", "0.50", "2.00"),
    )


def test_a_document_counts_results_by_their_trials() -> None:
    again = RESULTS[0].model_copy(update={"trials": 256})
    run = Run(machine={}, effort="full", seed=0, calls=(), results=(again, *RESULTS[1:]))
    assert "2 cases, 8 trials for 3 results, 256 trials for 1 result." in document(run)


def test_document_has_one_line_a_case() -> None:
    run = Run(
        machine={"cpu": "some", "cores": 2}, effort="full", seed=0, calls=(),
        results=RESULTS,
    )  # fmt: skip
    made, families, listed = document(run).split("\n\n")
    assert made.splitlines() == [
        "some, 2 cores; ansorpy 1.0, onnxruntime 1.0, torch 1.0; 2 cases, 8 trials each.",
        "At 1 thread: peak 4 to 4 GFLOP/s.",
        "At 2 threads: peak 4 to 4 GFLOP/s, a fork and join 50.0 µs.",
    ]
    assert families.startswith("| family | cases | bound by | ratio, 1 thr |")
    assert listed.splitlines() == [
        "| case | ms, 1 thr | algorithm | best peer | ratio | share "
        "| ms, 2 thr | algorithm | best peer | ratio | share |",
        "| --- " * 11 + "|",
        f"| {GEMM.name} | 0.5000 | direct | 1.000 torch | 2.00 | 50% "
        "| 0.5000 | direct | 4.000 onnxruntime | 8.00 | 50% |",
        f"| {NORM.name} | 12.50 | direct | 6.250 onnxruntime | 0.50 | 2% "
        "| failed | direct | 1.000 torch |  |  |",
    ]
