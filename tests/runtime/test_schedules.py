"""Programs as libraries record them, and texts that strangers may put there instead."""

from __future__ import annotations

import base64
import json
import zlib

import pytest

import ansorpy as ap
from ansorpy.errors import ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import Extent
from ansorpy.runtime.schedules import schedule_text, states_of
from ansorpy.schedule.state import State
from tests.search.tasks import matmul

DEEP = "[" * 100_000


def scheduled() -> State:
    state, _ = State.initial(matmul(7, 5, 3).dag).split("C", "i", (2,))
    return state


def doubled(n: Extent) -> ComputeDAG:
    x = ap.placeholder((n, 3), name="x")
    return ComputeDAG.of([x, ap.compute((n, 3), lambda i, j: x[i, j] * 2.0, name="y")])


def packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 1)).decode()


def recorded() -> list[str]:
    """The definition and the steps in the text of a program."""
    [parts] = json.loads(zlib.decompress(base64.b64decode(schedule_text([scheduled()]))))
    assert isinstance(parts, list)
    return parts


def test_a_program_comes_back() -> None:
    [again] = states_of(schedule_text([scheduled()]))
    assert str(again.history) == str(scheduled().history) and again.text() == scheduled().text()


def test_each_part_of_the_sizes_comes_back_with_its_range() -> None:
    parts = []
    for n, factor in ((ap.dim("n", 0, 6), 1), (ap.dim("n", 7, 35, step=7), 7)):
        parts.append(State.initial(doubled(n)).split("y", "i", (factor,))[0])
    again = states_of(schedule_text(parts))
    assert [str(*state.definition.dims) for state in again] == ["n=0..6", "n=7..35:step=7"]
    assert [state.text() for state in again] == [state.text() for state in parts]


@pytest.mark.parametrize(
    "text",
    [
        "", "%", packed(""), packed(DEEP), packed("[1, 2]"), packed("[[1, 2, 3]]"),
        packed(json.dumps([[DEEP, "[]"]])), packed(json.dumps([[recorded()[0], DEEP]])),
        packed(json.dumps([[recorded()[0], '[{"kind": "compute_inline", "stage": "missing"}]']])),
    ],
    ids=["empty", "base64", "nothing", "deep", "numbers", "three", "deep-definition",
         "deep-steps", "no-stage"],
)  # fmt: skip
def test_any_other_text_is_refused(text: str) -> None:
    assert_refused(text)


def test_a_text_that_unpacks_to_a_huge_one_is_refused() -> None:
    assert_refused(packed("[" + " " * (80 << 20)))


def assert_refused(text: str) -> None:
    with pytest.raises(ForeignFile, match="a schedule that this ansorpy cannot read") as caught:
        states_of(text)
    assert str(caught.value).count("hint: ") == 1
