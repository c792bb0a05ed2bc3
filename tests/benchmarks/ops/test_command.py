from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.common.compared import this_machine
from benchmarks.ops.__main__ import main, parser
from benchmarks.ops.case import Case
from benchmarks.ops.measure import OperatorSettings
from benchmarks.ops.result import Result, Run, read_run
from tests.benchmarks.ops.results import GEMM, NORM, result
from tests.codegen.cuda.compiling import needs_nvrtc


def test_options() -> None:
    options = parser().parse_args(["--only", "LN*", "GMM", "--threads", "1", "--trials", "32"])
    assert (options.only, options.threads, options.trials) == (["LN*", "GMM"], [1], 32)
    with pytest.raises(SystemExit):
        parser().parse_args(["--against", "numpy"])


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "LN"]) == 0
    assert capsys.readouterr().out == "LN.128x768\n"
    assert main(["--only", "nothing"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: no case fits 'nothing'",
        "hint: --list prints their names",
    ]


def test_show_prints_a_file_without_measuring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ops.json"
    results = (result(GEMM, 1, ansorpy=0.5, torch=1.0), result(NORM, 1, ansorpy=2.0, torch=1.0))
    run = Run(machine=this_machine(), effort="full", seed=0, calls=(), results=results)
    path.write_text(run.to_json())
    assert main(["--show", str(path), "--only", "LN"]) == 0
    printed = capsys.readouterr().out
    assert NORM.name in printed and GEMM.name not in printed
    page = tmp_path / "page.md"
    page.write_text("<!-- benchmarks.ops --><!-- end of benchmarks.ops -->\n")
    assert main(["--show", str(path), "--into", str(page)]) == 0
    assert f"| {GEMM.name} | 0.5000 | direct | 1.000 torch | 2.00 |" in page.read_text()
    assert main(["--show", str(tmp_path / "absent")]) == 6
    assert main(["--show", str(path), "--earlier", str(path)]) == 0
    assert "earlier / now" in capsys.readouterr().out


def test_below_asks_for_what_lost_or_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ops.json"
    results = (result(GEMM, 1, ansorpy=1.0, torch=0.9), result(NORM, 1, ansorpy=1.0, torch=0.95))
    run = Run(machine=this_machine(), effort="full", seed=0, calls=(), results=results)
    path.write_text(run.to_json())

    def measured(case: Case, threads: int, settings: OperatorSettings, say: object) -> Result:
        return result(case, threads, ansorpy=1.0, torch=2.0)

    monkeypatch.setitem(main.__globals__, "measure", measured)
    asked = ["--only", GEMM.name, NORM.name, "--threads", "1", "2", "--below", "0.93"]
    assert main([*asked, "--db", str(tmp_path / "db"), "--json", str(path)]) == 0
    ratios = {r.key: r.ratio for r in read_run(path).results}
    assert ratios == {
        (GEMM.name, 1): 2.0, (NORM.name, 1): 0.95, (GEMM.name, 2): 2.0, (NORM.name, 2): 2.0,
    }  # fmt: skip
    assert main([*asked, "--db", str(tmp_path / "db")]) == 2
    assert "--below needs the results so far" in capsys.readouterr().err


def test_cross_compilation(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--only", "LN.128x768", "NRM.256*", "--threads", "2", "--target"]
    assert main([*asked, "aarch64-linux-gnu"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "2 of 2 cases compile for aarch64-linux-gnu\n"
    assert printed.err.count(", ok") == 2


@needs_nvrtc
def test_compilation_for_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--only", "LN.128x768", "GMM.512x32*", "--target"]
    assert main([*asked, "sm_90"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "3 of 3 cases compile for sm_90\n"
    assert printed.err.count("registers") >= 3
    assert main([*asked, "cuda"]) in (0, 5)
