"""Pairs of outputs and inputs as users write them: pairs, patterns, and messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from ansorpy.aliases import matching_pairs, named_alias
from ansorpy.errors import UsageError


def test_pairs_are_read() -> None:
    assert named_alias("present=past") == ("present", "past")
    assert named_alias("a.*=b.*=c") == ("a.*", "b.*=c")
    for wrong in ("present", "=past", "present="):
        with pytest.raises(UsageError, match=f"'{wrong}' does not pair an output with an input"):
            named_alias(wrong)


def test_stars_stand_for_the_same_text() -> None:
    outputs = ["logits", *(f"present.{n}.{kind}" for n in (0, 11) for kind in ("key", "value"))]
    inputs = ["ids", *(f"past.{n}.old.{kind}" for n in (0, 11) for kind in ("key", "value"))]
    pairs = matching_pairs({"present.*.*": "past.*.old.*"}, outputs, inputs)
    assert pairs == dict(zip(outputs[1:], inputs[1:], strict=True))
    keys = matching_pairs({"present.*.key": "past.*.old.key"}, outputs, inputs)
    assert list(keys) == ["present.0.key", "present.11.key"]
    assert matching_pairs({"a*": "b*"}, ["a*"], ["b*"]) == {"a*": "b*"}
    assert matching_pairs({}, outputs, inputs) == {}


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ({"y": "x"}, "the network has no output 'y'"),
        ({"a": "b"}, "the network has no input 'b'"),
        ({"a*": "x"}, "a*=x has 1 * before = and 0 behind it"),
        ({"b*": "x*"}, "no output is called b*"),
        ({"a*": "x*"}, "the network has no input 'x2'"),
        ({"a": 5}, "output 'a' is paired with 5, no name"),
        ({"a*": b"x*"}, "output 'a*' is paired with b'x*', no name"),
        ({"a1": "x1", "a2": "x1"}, "two outputs cannot share the memory of input 'x1'"),
        ({"a1": "x", "a*": "x*"}, "output 'a1' is paired twice: 'x' and 'x1'"),
    ],
)
def test_names_that_do_not_exist_are_refused(aliases: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        matching_pairs(aliases, ["a", "a1", "a2"], ["x", "x1"])
    assert caught.value.hint
