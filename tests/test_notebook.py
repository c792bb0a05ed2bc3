"""Cards of notebooks: what they say, and that they are small, well-formed HTML without scripts."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

import ansorpy as ap
from ansorpy.evaluation.tables import Table
from ansorpy.notebook import card, grid
from tests.runtime import programs


class Page(HTMLParser):
    """The text of a page whose elements are all closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def product() -> list[ap.Tensor]:
    a, b = ap.placeholder((6, 5), name="A"), ap.placeholder((5, 7), name="B")
    k = ap.reduce_axis(5, name="k")
    return [
        a, b, ap.compute((6, 7), lambda i, j: ap.sum(a[i, k] * b[k, j], axis=k), name="C")
    ]  # fmt: skip


def shown(thing: object) -> str:
    html = thing._repr_html_()  # type: ignore[attr-defined]
    page = Page(html)
    assert "script" not in page.tags and len(html) < 6000
    assert "color:" not in html.replace("color:inherit", "")  # the page's own, dark or light
    return " ".join(page.text)


def test_cards_escape_what_they_show() -> None:
    text = "<b> & 'c'"
    page = Page(card(text, text, {text: text, "nothing": None}, {text: text}, [grid([text], [])]))
    assert [part for part in page.text if part.strip()] == [text] * 7


def test_numbers_are_right_aligned() -> None:
    html = Table("times", ("engine", "ms"), (("ours", "1"),), frozenset({"ms"}))._repr_html_()
    assert "times" in html and html.count("text-align:right") == 2


def test_states() -> None:
    state = ap.State.initial(product())
    assert repr(state) == "<State of A, B -> C: 3 stages>"
    state, _ = state.split("C", "i", (None,))
    assert repr(state) == "<State of A, B -> C: 3 stages, 1 step, 1 open decision>"
    text = shown(state)
    assert "for i.0 in 0..?" in text and "state.split('C', 'i', (None,))" in text
    assert "C[i, j] = sum(" in text


def test_definitions_and_tasks() -> None:
    tensors = product()
    assert repr(tensors[2]) == "<Tensor C: float32[6, 7]>"
    dag = ap.ComputeDAG.of(tensors)
    assert repr(dag) == "<ComputeDAG A, B -> C>"
    task = ap.Task(dag, ap.Target.parse("x86-64-v3"), 2, name="product")
    assert repr(task) == "<Task product: A, B -> C, 2 threads on x86-64-v3>"
    assert "420 operations" in shown(task) and "C[i, j] = sum(" in shown(task)


def test_kernels() -> None:
    kernel = ap.build(product(), threads=1)
    assert repr(kernel) == "<Kernel C: 'A', 'B' -> 'C', never timed>"
    text = shown(kernel)
    assert "float32[6, 7]" in text and "never timed" in text and "for k in 0..5" in text
    assert "as written" in text
    state, _ = ap.State.initial(product()).split("C", "i", (2,))
    assert "state.split('C', 'i', (2,))" in shown(ap.build(state, threads=1))


def test_models(rng: np.random.Generator) -> None:
    model, _ = programs.model(rng)
    text = shown(model)
    for said in ("demo", "float32[5, 32]", "threads", "peak of a run", "in order", "host"):
        assert said in text
    assert repr(model) == "<Model demo: 'x' -> 'first', 'sum/rows', 'plus one'>"
