"""``python -m benchmarks.zoo NAME FILE``: write a network with seeded random weights as ONNX."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import onnx

from ansorpy.cli.exit_codes import exit_code
from benchmarks.common.command import command_line
from benchmarks.zoo.suite import ALL, Entry

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    p = command_line("zoo", __doc__)
    p.add_argument("name", metavar="NAME", help=f"of {', '.join(ALL)}; NAME.b4 for a batch of 4")
    p.add_argument("file", type=Path, metavar="FILE")
    p.add_argument("--seed", type=int, default=0)
    return exit_code(partial(_write, p.parse_args(arguments)))


def _write(options: argparse.Namespace) -> int:
    onnx.save(Entry.parse(options.name).model(options.seed), options.file)
    print(f"wrote {options.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
