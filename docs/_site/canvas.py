"""What drawn pictures are made of: cards, arrows and labels, readable on light and dark pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

__all__ = ["BLUE", "GRAY", "GREEN", "ORANGE", "RED", "Canvas", "Ink"]


class Ink(NamedTuple):
    """Colours of a card: its area, its border and its text."""

    fill: str
    line: str
    text: str


BLUE = Ink("#dfe9fb", "#4a74c9", "#16305f")
GREEN = Ink("#dcf1e3", "#3d9363", "#14432a")
ORANGE = Ink("#fbeccb", "#c08a1e", "#5a3d05")
RED = Ink("#fadfe2", "#c45465", "#5f1a25")
GRAY = Ink("#eceff4", "#8a93a5", "#2a3140")

LABEL = "#7d8696"
"""Of text and arrows outside of cards: the same contrast to white and to dark grey."""
SANS = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass
class Canvas:
    """A picture of *width* by *height* on a transparent ground; ``title`` is read aloud."""

    title: str
    width: int
    height: int
    parts: list[str] = field(default_factory=list)

    def card(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        *lines: str,
        ink: Ink = GRAY,
        mono: bool = False,
        size: float = 13,
    ) -> None:
        """A box with centred lines, the first of them bold if there are several."""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="7" fill="{ink.fill}"'
            f' stroke="{ink.line}" stroke-width="1.4"/>'
        )
        step = size * 1.35
        top = y + h / 2 - step * (len(lines) - 1) / 2 + size * 0.35
        for at, line in enumerate(lines):
            bold = at == 0 and len(lines) > 1
            self.text(x + w / 2, top + at * step, line, ink.text, mono=mono, bold=bold, size=size)

    def text(
        self,
        x: float,
        y: float,
        line: str,
        colour: str = LABEL,
        *,
        mono: bool = False,
        bold: bool = False,
        size: float = 13,
        anchor: str = "middle",
    ) -> None:
        """A line of text at its baseline."""
        family = MONO if mono else SANS
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-family="{family}" font-size="{size:g}"{weight}'
            f' fill="{colour}" text-anchor="{anchor}" xml:space="preserve">{escape(line)}</text>'
        )

    def arrow(self, *points: tuple[float, float], label: str = "", above: float = 7) -> None:
        """A line through *points* with a head at the last, *label* over the middle of the first."""
        path = " ".join(f"{'L' if at else 'M'}{x:g} {y:g}" for at, (x, y) in enumerate(points))
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{LABEL}" stroke-width="1.6"'
            ' stroke-linejoin="round" marker-end="url(#head)"/>'
        )
        if label:
            (x1, y1), (x2, y2) = points[:2]
            self.text((x1 + x2) / 2, (y1 + y2) / 2 - above, label, size=12)

    def bar(self, x: float, y: float, w: float, h: float, ink: Ink) -> None:
        """A filled bar without text."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="2" fill="{ink.line}"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A dashed line without a head."""
        self.parts.append(
            f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{LABEL}" stroke-width="1"'
            ' stroke-dasharray="3 4"/>'
        )

    def svg(self) -> str:
        """The picture as a file of its own."""
        head = (
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
            f' markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{LABEL}"/></marker>'
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"'
                f' width="{self.width}" height="{self.height}" role="img">',
                f"<title>{escape(self.title)}</title>",
                f"<defs>{head}</defs>",
                *self.parts,
                "</svg>\n",
            ]
        )
