"""Draws docs/pictures/*.svg: ``python docs/_site/pictures.py`` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from canvas import BLUE, GRAY, GREEN, ORANGE, RED, Canvas, Ink

FOLDER = Path(__file__).parent.parent / "pictures"


def overview() -> Canvas:
    """All of it: what goes in, the loop, what comes out."""
    c = Canvas("From a network or an operator to a fast program", 680, 300)
    c.card(10, 20, 130, 52, "ONNX network", "net.onnx", ink=BLUE)
    c.card(10, 112, 130, 52, "operator", "ap.compute(...)", ink=BLUE)
    c.card(200, 66, 120, 52, "tasks", "definitions", ink=BLUE)
    c.card(375, 66, 120, 52, "sketches", "open sizes", ink=ORANGE)
    c.card(550, 66, 120, 52, "candidates", "a table", ink=ORANGE)
    c.arrow((140, 46), (196, 82))
    c.text(182, 52, "cut", size=12)
    c.arrow((140, 138), (196, 104))
    c.arrow((320, 92), (371, 92), label="rules")
    c.arrow((495, 92), (546, 92), label="sizes")
    c.card(550, 200, 120, 60, "propose", "strategy", ink=GREEN)
    c.card(375, 200, 120, 60, "rank", "cost model", ink=GREEN)
    c.card(200, 200, 120, 60, "measure", "this machine", ink=GREEN)
    c.arrow((610, 118), (610, 196))
    c.arrow((550, 230), (499, 230))
    c.arrow((375, 230), (324, 230))
    c.arrow((260, 260), (260, 285), (610, 285), (610, 264))
    c.text(435, 279, "learn from every trial", size=12)
    c.card(10, 204, 130, 52, "fastest, checked", "net.so, Kernel", ink=GREEN)
    c.arrow((200, 230), (144, 230))
    return c


def definition() -> Canvas:
    """Tensors and formulas as a graph."""
    c = Canvas("The compute DAG of a matrix product with ReLU", 780, 190)
    c.card(10, 20, 150, 52, "A", "float32[512, 512]", ink=GRAY)
    c.card(10, 110, 150, 52, "B", "float32[512, 512]", ink=GRAY)
    c.card(
        235, 58, 230, 66, "C[i, j]", "sum(A[i, k] * B[k, j])", "k in 0..512", ink=BLUE, size=12.5
    )
    c.card(540, 65, 220, 52, "D[i, j]", "max(C[i, j], 0)", ink=BLUE)
    c.arrow((160, 46), (231, 78))
    c.arrow((160, 136), (231, 104))
    c.arrow((465, 91), (536, 91))
    c.text(85, 182, "placeholders", size=12)
    c.text(350, 182, "a reduction over k", size=12)
    c.text(650, 182, "elementwise", size=12)
    return c


def sketch() -> Canvas:
    """Two sketches of one definition, their loops as boxes within boxes."""
    c = Canvas("Rules derive sketches with open sizes from a definition", 780, 262)
    c.card(10, 95, 130, 60, "definition", "C, then D", ink=BLUE)
    loops = ["i.0 ?", "j.0 ?", "k.0 ?", "i.1 ?", "k.1 ?", "j.1 ?"]
    _nest(c, 290, "tile, D after C", loops, fused=False)
    _nest(c, 540, "tile, D in the tiles of C", loops, fused=True)
    c.arrow((140, 115), (286, 80))
    c.text(205, 70, "MultiLevelTiling", size=11.5)
    c.arrow((140, 140), (215, 236), (536, 236))
    c.text(395, 254, "MultiLevelTilingWithFusion", size=11.5)
    return c


def _nest(c: Canvas, x: float, title: str, loops: list[str], *, fused: bool) -> None:
    """Loops as boxes within boxes, D within the second of them or behind all."""
    c.text(x + 115, 20, title, size=12)
    for at, loop in enumerate(loops):
        inset, top = at * 9, 30 + at * 20
        height = 196 - at * 22 - (0 if fused and at < 2 else 26)
        c.card(x + inset, top, 230 - 2 * inset, height, ink=ORANGE)
        label = f"for {loop}"
        c.text(x + inset + 8, top + 15, label, ORANGE.text, mono=True, size=11, anchor="start")
    c.text(x + 115, 173, "C += A * B", BLUE.text, mono=True, size=11)
    if fused:
        c.text(x + 115, 214, "D = max(C, 0)", BLUE.text, mono=True, size=11)
    else:
        c.card(x, 204, 230, 22, "for i, j: D = max(C, 0)", ink=BLUE, mono=True, size=11)


def table() -> Canvas:
    """Rows are candidates, columns are decisions."""
    c = Canvas("The candidates of a sketch as rows of a table", 780, 232)
    heads = ["i.1", "i.2", "j.1", "j.3", "k.1", "unroll", "vector", "valid", "score"]
    rows = [
        ["8", "4", "2", "16", "8", "64", "j.3", "yes", "0.61"],
        ["16", "6", "1", "32", "4", "16", "j.3", "yes", "0.93"],
        ["64", "32", "8", "64", "1", "512", "j.3", "no", ""],
        ["4", "12", "4", "16", "16", "64", "j.3", "yes", "0.87"],
    ]
    for column, head in enumerate(heads):
        x = 14 + column * 60
        c.text(x + 28, 20, head, size=12, mono=True)
        for at, row in enumerate(rows):
            ink = (
                GREEN if at == 1 else (RED if row[7] == "no" else (ORANGE if column < 7 else GRAY))
            )
            c.card(x, 32 + at * 36, 56, 30, row[column], ink=ink, mono=True, size=12)
    c.text(222, 200, "a column for each decision", size=12)
    c.text(462, 200, "computed, column by column", size=12)
    c.text(277, 222, "thousands of rows: sampled, mutated and scored at once by numpy", size=12)
    c.arrow((556, 83), (606, 83))
    c.card(610, 48, 160, 70, "a program", "sizes filled in,", "lowered, compiled", ink=GREEN)
    return c


def search() -> Canvas:
    """The loop of one task."""
    c = Canvas("A round of the search", 780, 280)
    c.card(
        40, 40, 170, 62, "propose", "mutate and cross", "the best; draw anew", ink=GREEN, size=12.5
    )
    c.card(300, 40, 170, 62, "rank", "cost model scores", "thousands of rows", ink=GREEN, size=12.5)
    c.card(560, 40, 170, 62, "select", "the best, and a few", "at random", ink=GREEN, size=12.5)
    c.card(
        560,
        180,
        170,
        62,
        "measure",
        "build, check, time",
        "in worker processes",
        ink=GREEN,
        size=12.5,
    )
    c.card(
        300, 180, 170, 62, "record", "every trial, failed", "ones with reasons", ink=BLUE, size=12.5
    )
    c.card(40, 180, 170, 62, "learn", "train the model", "on all records", ink=GREEN, size=12.5)
    c.arrow((210, 71), (296, 71), label="candidates")
    c.arrow((470, 71), (556, 71), label="scores")
    c.arrow((645, 102), (645, 176))
    c.text(690, 143, "trials", size=12)
    c.arrow((560, 211), (474, 211), label="times")
    c.arrow((300, 211), (214, 211))
    c.arrow((125, 180), (125, 106))
    c.text(178, 147, "next round", size=12)
    c.text(385, 147, "until the budget is spent", size=12)
    return c


def partition() -> Canvas:
    """Operators on the left, tasks on the right."""
    c = Canvas("A network is cut into calls; equal calls are one task", 780, 262)
    c.text(105, 16, "operators", size=12)
    c.text(380, 16, "calls of kernels", size=12)
    c.text(655, 16, "tasks", size=12)
    groups: list[tuple[list[str], str, Ink]] = [
        (["Conv", "BatchNorm", "Relu"], "conv + relu", BLUE),
        (["Conv", "Add", "Relu"], "conv + add + relu", ORANGE),
        (["Conv", "BatchNorm", "Relu"], "conv + relu", BLUE),
        (["Softmax"], "softmax", GREEN),
    ]
    for at, (operators, call, ink) in enumerate(groups):
        y = 28 + at * 58
        w = 210 / len(operators)
        for place, operator in enumerate(operators):
            c.card(place * w + 2, y, w - 6, 40, operator, ink=ink, size=11)
        c.arrow((212, y + 20), (286, y + 20))
        c.card(290, y, 180, 40, call, ink=ink)
    c.card(560, 57, 200, 40, "task 1: called twice", ink=BLUE)
    c.card(560, 115, 200, 40, "task 2: called once", ink=ORANGE)
    c.card(560, 202, 200, 40, "task 3: called once", ink=GREEN)
    c.arrow((470, 48), (556, 70))
    c.arrow((470, 106), (556, 132))
    c.arrow((470, 164), (556, 88))
    c.arrow((470, 222), (556, 222))
    c.text(105, 260, "joined with their neighbours", size=12)
    c.text(655, 260, "each is tuned once", size=12)
    return c


def timing() -> Canvas:
    """Time runs to the right; each bar is a call."""
    c = Canvas("Bursts of calls alternate; disturbed ones are repeated", 780, 216)
    lanes = [("cores locked", 40), ("program A", 84), ("program B", 128), ("probe", 172)]
    for name, y in lanes:
        c.text(96, y + 5, name, size=12.5, anchor="end")
        c.line(106, y + 14, 770, y + 14)
    c.bar(110, 30, 656, 18, GRAY)
    c.text(438, 44, "no other tuner times on these cores meanwhile", "#ffffff", size=11.5)
    for at in range(6):
        x, lane = 122 + at * 106, 84 if at % 2 == 0 else 128
        ink = RED if at == 3 else (BLUE if at % 2 == 0 else GREEN)
        for call in range(7):
            wide = 15 if at == 3 and call > 2 else 9
            if x + 14 + call * (wide + 2.5) < x + 88:
                c.bar(x + 14 + call * (wide + 2.5), lane - 12, wide, 24, ink)
        c.bar(x, 164, 5, 16, GRAY)
        c.bar(x + 92, 164, 5, 16, RED if at == 3 else GRAY)
    c.text(486, 112, "disturbed: timed again", size=11.5)
    c.text(438, 208, "time; the median of the bursts' medians counts", size=12)
    return c


def checking() -> Canvas:
    """Checks before timing above, of the fastest below."""
    c = Canvas("What each program is checked against", 780, 236)
    c.card(10, 40, 150, 58, "interpreter", "numpy, small sizes", ink=BLUE)
    c.card(240, 40, 150, 58, "plain schedule", "the reference", ink=BLUE)
    c.card(470, 40, 150, 58, "every candidate", "before it is timed", ink=ORANGE)
    c.card(470, 160, 150, 58, "the fastest", "of each task", ink=GREEN)
    c.card(240, 160, 150, 58, "proof", "memory safety", ink=BLUE)
    c.card(10, 160, 150, 58, "verify", "whole network", ink=BLUE)
    c.card(665, 46, 100, 46, "failed trial", "wrong result", ink=RED, size=12)
    c.arrow((160, 69), (236, 69), label="checks")
    c.arrow((390, 69), (466, 69), label="checks")
    c.arrow((620, 69), (661, 69))
    c.arrow((545, 98), (545, 156))
    c.text(585, 132, "timed", size=12)
    c.arrow((470, 189), (394, 189))
    c.arrow((240, 189), (164, 189), label="library")
    c.text(85, 152, "onnxruntime, or onnx itself", size=11.5)
    c.text(315, 152, "of all sizes it serves", size=11.5)
    return c


PICTURES: tuple[Callable[[], Canvas], ...] = (
    overview, definition, sketch, table, search, partition, timing, checking,
)  # fmt: skip


def drawn() -> dict[str, str]:
    """Each picture's file name and text."""
    return {f"{draw.__name__}.svg": draw().svg() for draw in PICTURES}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawn().items():
        (FOLDER / name).write_text(text)
