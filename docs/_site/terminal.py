"""Draws what a terminal shows while a network is tuned: ``python docs/_site/terminal.py net.onnx``.

The network is compiled with the default budget, or that of --time-limit; the picture is what is
shown when *--at* of the budget is spent.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

import ansorpy as ap
from ansorpy.api.display.board import Board
from ansorpy.api.display.drawing import Drawing
from ansorpy.cli.peers import peers_timed
from ansorpy.search.events import Event

PICTURE = Path(__file__).parent.parent / "pictures" / "terminal.svg"


class Picture:
    """A listener that draws a search once, when the share *at* of its budget is spent.

    ``svg`` is empty before that.
    """

    def __init__(self, command: str, width: int, rows: int, at: float) -> None:
        self.board = Board()
        self.svg = ""
        self._command, self._width, self._rows, self._at = command, width, rows, at

    def __call__(self, event: Event) -> None:
        """Note *event*, and draw if it is time."""
        self.board(event)
        is_known = self.board.total_s is not None and not self.board.ended
        if not self.svg and is_known and self.board.done() >= self._at:
            self.svg = self._drawn()

    def _drawn(self) -> str:
        console = Console(
            file=io.StringIO(), record=True, width=self._width, force_terminal=True, highlight=False
        )
        console.print(Text(f"$ {self._command}"))
        console.print(Drawing(self.board, self._rows))
        return console.export_svg(title="ansorpy")


def main() -> None:
    """Tune the network and write the picture; exit with 1 if the budget was spent before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--output", "-o", type=Path, default=PICTURE)
    parser.add_argument("--time-limit", default="5m")
    parser.add_argument("--against", nargs="*", default=[])
    parser.add_argument("--db", default=None)
    parser.add_argument("--at", type=float, default=0.6)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--rows", type=int, default=14)
    asked = parser.parse_args()
    against = f" --against {' '.join(asked.against)}" if asked.against else ""
    command = f"ansorpy compile {asked.model.name} --time-limit {asked.time_limit}{against}"
    picture = Picture(command, asked.width, asked.rows, asked.at)
    for peer in peers_timed(asked.model, {}, asked.against):
        picture(peer)
    ap.compile(asked.model, time_limit=asked.time_limit, db=asked.db, progress=picture)
    if not picture.svg:
        sys.exit(
            "the budget was spent before every task had a program: give more with --time-limit"
        )
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(picture.svg)
    print(asked.output)


if __name__ == "__main__":
    main()
