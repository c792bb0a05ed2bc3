"""Programs as libraries record them, and texts that strangers may put there instead."""

from __future__ import annotations

import base64
import json
import zlib

import pytest

from ansorpy.errors import ForeignFile
from ansorpy.runtime.schedules import schedule_text, state_of
from ansorpy.schedule.state import State
from tests.search.tasks import matmul

DEEP = "[" * 100_000


def scheduled() -> State:
    state, _ = State.initial(matmul(7, 5, 3).dag).split("C", "i", (2,))
    return state


def packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def recorded() -> list[str]:
    """The definition and the steps in the text of a program."""
    parts = json.loads(zlib.decompress(base64.b64decode(schedule_text(scheduled()))))
    assert isinstance(parts, list)
    return parts


def test_a_program_comes_back() -> None:
    again = state_of(schedule_text(scheduled()))
    assert str(again.history) == str(scheduled().history) and again.text() == scheduled().text()


@pytest.mark.parametrize(
    "text",
    [
        "", "%", packed(""), packed(DEEP), packed("[1, 2]"), packed("[1, 2, 3]"),
        packed(json.dumps([DEEP, "[]"])), packed(json.dumps([recorded()[0], DEEP])),
        packed(json.dumps([recorded()[0], '[{"kind": "compute_inline", "stage": "missing"}]'])),
        packed("[" + " " * (80 << 20)),
    ],
    ids=["empty", "base64", "nothing", "deep", "numbers", "three", "deep-definition",
         "deep-steps", "no-stage", "huge"],
)  # fmt: skip
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ForeignFile, match="a schedule that this ansorpy cannot read") as caught:
        state_of(text)
    assert str(caught.value).count("hint: ") == 1
