"""``python -m tests.campaigns NAME``: run many cases of one campaign; exit code 1 if one fails."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from pathlib import Path

from pydantic import TypeAdapter

from ansorpy.config import available_cores
from tests.campaigns.campaign import Outcome, run_case
from tests.campaigns.catalogue import CAMPAIGNS
from tests.campaigns.pool import run


def main() -> int:
    """Run what the command line asks for, and print what failed and what was counted."""
    given = _arguments()
    campaign = CAMPAIGNS[given.campaign]
    os.environ.setdefault("ANSORPY_CALIBRATE", "0")
    if given.only is not None:
        print(run_case(campaign, given.seed, given.only))
        return 0
    cases = campaign.size if given.cases is None else given.cases
    numbers = itertools.count(given.first)
    outcome = run(
        given.campaign,
        campaign,
        given.seed,
        numbers if cases is None else itertools.islice(numbers, cases),
        given.jobs,
        given.time_limit,
    )
    _show(outcome)
    if given.json is not None:
        given.json.write_bytes(TypeAdapter(Outcome).dump_json(outcome, indent=1) + b"\n")
    return int(bool(outcome.failures))


def _show(outcome: Outcome) -> None:
    for failure in outcome.failures:
        print(f"case {failure.number}:\n{failure.seen}")
    for measure, worst in sorted(outcome.tally.worst.items()):
        print(f"{measure}: at most {worst.value:.4g}, {worst.where}")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.tally.kinds.items()))
    print(
        f"{outcome.campaign}: seed {outcome.seed}, {outcome.cases} cases in {outcome.seconds:.0f} s"
        f" ({kinds}), {len(outcome.failures)} failed"
    )


def _arguments() -> argparse.Namespace:
    about = "\n".join(f"  {name:12}{campaign.about}" for name, campaign in CAMPAIGNS.items())
    parser = argparse.ArgumentParser(
        "python -m tests.campaigns",
        description=f"Runs random cases of one campaign:\n{about}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("campaign", choices=CAMPAIGNS)
    parser.add_argument("--seed", type=int, default=0, help="other seeds draw other cases")
    parser.add_argument(
        "--cases", type=int, help="how many (default: all, or until the time is up)"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, metavar="N", help="run case N alone, in this process")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds (default: 600)")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="processes")
    parser.add_argument("--json", type=Path, help="also write the outcome to this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
