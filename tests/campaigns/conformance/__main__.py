"""``python -m tests.campaigns.conformance``: the whole of onnx's backend suite.

Cases run in processes of their own, which may crash or hang.  A run that is stopped goes on where
it was, unless the sources have changed; one that is complete is only told again.  The exit code is
1 if a case no longer passes that did, or with --gpu does not pass that does on CPUs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ansorpy.config import available_cores
from tests.campaigns.conformance.campaign import CONFORMANCE, ON_A_GPU
from tests.campaigns.conformance.results import RESULTS, VERDICTS, Result, lost, read, write
from tests.campaigns.conformance.suite import SuiteCase, suite
from tests.campaigns.conformance.table import PAGE, page
from tests.campaigns.pool import Ended, ended

_ROOT = Path(__file__).parents[3]
_RAISED = re.compile(r"([\w.]*(Error|Exception)|ansorpy\.errors\.\w+)\b")
"""The line of a traceback that has the error."""
_REASON = 160
"""Characters of a reason."""
_STATE = _ROOT / "build" / "conformance"


def main() -> int:
    """Run the cases that are left, print what was counted, and write what was asked for."""
    given = _arguments()
    state = _STATE / f"{_digest()}{'.gpu' if given.gpu else ''}.csv"
    found = {} if given.again else read(state)
    with TemporaryDirectory(prefix="ansorpy-conformance-") as folder:
        # Nothing is timed: with locks of their own, processes wait for no tuner's turn.
        os.environ.update(
            ANSORPY_CALIBRATE="0", ANSORPY_CACHE=folder, ANSORPY_STATE=folder, TMPDIR=folder
        )
        _run(found, state, given)
    before = read(RESULTS)
    worse = lost(before, found)
    how = "passes on CPUs alone" if given.gpu else "no longer passes"
    for result in worse:
        print(f"{result.case} {how}: {result.verdict}, {result.reason}")
    if len(found) < len(suite()):
        print(f"{len(suite()) - len(found)} cases are left; run this again")
        return 1
    if given.accept:
        write(RESULTS, found.values())
        PAGE.write_text(page(found.values()))
    return int(bool(worse) and not given.accept)


def _run(found: dict[str, Result], state: Path, given: argparse.Namespace) -> None:
    """Add the results of cases that are not yet in *found*, and save them as they come."""
    cases = suite()
    chosen = [n for n, case in enumerate(cases) if given.only in case.name]
    left = [n for n in chosen if cases[n].name not in found]
    print(f"{len(chosen) - len(left)} cases are done, {len(left)} are left")
    state.parent.mkdir(parents=True, exist_ok=True)
    for one in _ended(left, given):
        result = _result(cases[one.number], one)
        found[result.case] = result
        write(state, found.values())
        if result.verdict not in ("passed", "out of scope"):
            print(f"{result.case}: {result.verdict}, {result.reason}", flush=True)
    counts = Counter(result.verdict for result in found.values())
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS))


def _ended(numbers: list[int], given: argparse.Namespace) -> Iterator[Ended]:
    campaign = ON_A_GPU if given.gpu else CONFORMANCE
    return ended(campaign, 0, iter(numbers), given.jobs, given.time_limit)


def _result(case: SuiteCase, one: Ended) -> Result:
    """What became of *case*; an error is told by its message, which ends the traceback."""
    if one.error:
        lines = one.error.splitlines()
        began = [n for n, line in enumerate(lines) if _RAISED.match(line)]
        said = " ".join(lines[began[-1] if began else -1 :])
        verdict, reason = "failed", " ".join(said.split())[:_REASON]
    else:
        [kind] = one.tally.kinds
        verdict, _, reason = kind.partition(": ")
    return Result(case.name, case.operator, case.opset, case.types, verdict, reason)


def _digest() -> str:
    """A number for the sources that results depend on."""
    total = hashlib.sha256()
    folders = (_ROOT / "ansorpy", Path(__file__).parent)
    for path in sorted(p for folder in folders for p in folder.rglob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.campaigns.conformance", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in their names")
    parser.add_argument("--gpu", action="store_true", help="run the cases on this machine's GPU")
    parser.add_argument("--again", action="store_true", help="forget what is done")
    parser.add_argument(
        "--accept", action="store_true", help="keep the results, and write the table of the docs"
    )
    parser.add_argument("--time-limit", type=float, default=1800.0, help="seconds (default: 1800)")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="processes")
    given = parser.parse_args()
    if given.gpu and given.accept:
        parser.error("the results that are kept are those of CPUs")
    return given


if __name__ == "__main__":
    sys.exit(main())
