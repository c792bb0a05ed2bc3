"""Sizes of dimensions as text and in Python, and the share of calls that some sizes stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.size_ranges import SizeRange, named_dim, named_shape, shape_of, size_of

OBSERVED = SizeRange(1, 32, calls=((1, 1), (8, 2), (32, 1)))


@pytest.mark.parametrize(
    ("text", "given", "want"),
    [
        ("64", 64, 64),
        ("0", 0, 0),
        ("1..512", (1, 512), SizeRange(1, 512)),
        ("0..2047", SizeRange(0, 2047), SizeRange(0, 2047)),
        ("7..7", (7, 7), 7),
        ("320..1280:step=32", (320, 1280, 32), SizeRange(320, 1280, 32)),
        ("1..512:geometric", "1..512:geometric", SizeRange(1, 512, geometric=True)),
        ("2..64:geometric:step=2", "2..64:step=2:geometric", SizeRange(2, 64, 2, geometric=True)),
        ("32,1,8,8", [8, 1, 32, 8], OBSERVED),
        ("1,8*2,32", "8,32,1,8", OBSERVED),
        ("5,5", [5, 5], 5),
    ],
)
def test_sizes_in_text_and_in_python(text: str, given: object, want: object) -> None:
    assert named_dim(f"n={text}") == ("n", want)
    assert size_of(given, "n") == size_of(text, "n") == want  # type: ignore[arg-type]
    if isinstance(want, SizeRange):
        assert size_of(str(want), "n") == want


def test_observed_sizes_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "sizes.txt"
    path.write_text("8\n1\n\n32\n8\n")
    assert named_dim(f"n=@{path}") == ("n", OBSERVED)
    path.write_text("8\neight\n")
    with pytest.raises(ForeignFile, match="'eight' is not one"):
        named_dim(f"n=@{path}")
    path.write_text("")
    with pytest.raises(ForeignFile, match="it has none"):
        named_dim(f"n=@{path}")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ForeignFile, match="it is not text"):
        named_dim(f"n=@{path}")
    with pytest.raises(ForeignFile, match="cannot read .*gone: No such file"):
        named_dim(f"n=@{tmp_path / 'gone'}")


def test_names_of_dimensions_and_inputs_may_contain_the_separators() -> None:
    assert named_dim("a=b=3") == ("a=b", 3)
    assert named_dim("p + 1=0..7") == ("p + 1", SizeRange(0, 7))
    assert named_shape("x=1x3x224x224") == ("x", (1, 3, 224, 224))
    assert named_shape("a=b=7") == ("a=b", (7,))
    name, sizes = named_shape("in:0=1,4x3x32..64:step=32x64..1280")
    assert name == "in:0" and sizes[0] == SizeRange(1, 4, calls=((1, 1), (4, 1)))
    assert sizes[1:] == (3, SizeRange(32, 64, 32), SizeRange(64, 1280))


@pytest.mark.parametrize("text", ["x", "x=", "x=1x", "=1x2", "x=1xN", "x=1x2..", "x=-1x2"])
def test_bad_shapes(text: str) -> None:
    with pytest.raises(UsageError, match="is not an input's shape"):
        named_shape(text)


@pytest.mark.parametrize(
    "text",
    [
        "n",
        "n=",
        "=1",
        "n=-1",
        "n=x",
        "n=1..",
        "n=1..2:half",
        "n=1..8:step=",
        "n=1,2..3",
        "n=1*",
        "n=1234567890123456789",
    ],
)
def test_bad_dims(text: str) -> None:
    with pytest.raises(UsageError, match="is not a dimension's size"):
        named_dim(text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((5, 1), "the range 5..1 is empty"),
        ((-1, 3), "begins below 0"),
        ((3, 10, 4), "not multiples of 4"),
        ((4, 8, 0), "step of .* must be at least 1"),
        ((1,), "is not a range of n"),
        ((1, 2, 3, 4), "is not a range of n"),
        (((1, 2), 3), "is not a size of n"),
        ((1.5, 3), "is not a size of n"),
        ("many", "'many' is not a size of n"),
        ("2..8:step=2:step=4", "two steps"),
        (2.5, "is not a size of n"),
        (True, "is not a size of n"),
        (None, "is not a size of n"),
        ([], "there is no size of n"),
        ("4*0", "there is no size of n"),
        ([3, -1], "no size may be negative"),
        (b"8", "b'8' is not a size of n"),
        (bytearray(b"8"), "is not a size of n"),
        (1 << 63, "the largest is 9223372036854775807"),
        (-1, "no size may be negative"),
    ],
)
def test_wrong_sizes_are_refused(given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        size_of(given, "n")  # type: ignore[arg-type]


def test_the_hint_of_a_wrong_step_names_ends_that_fit() -> None:
    with pytest.raises(UsageError, match="inside are from 4 to 8"):
        size_of("3..10:step=4", "n")


@pytest.mark.parametrize(
    "sizes",
    [
        SizeRange(1, 7),
        SizeRange(0, 60, 4),
        SizeRange(1, 100, geometric=True),
        OBSERVED,
    ],
)
def test_shares_are_those_of_the_nearest_size(sizes: SizeRange) -> None:
    """Each size of the range counts by its own weight for the one that differs by least."""
    chosen = sorted({sizes.low or sizes.step, sizes.usual, sizes.high})
    every = [n for n in range(sizes.low, sizes.high + 1) if n in sizes]
    own = dict(zip(every, sizes.weights([max(n, 0) for n in every]), strict=True))
    want = dict.fromkeys(chosen, 0.0)
    for n, weight in own.items():
        want[min(chosen, key=lambda c: max(c, n, 1) / max(min(c, n), 1))] += weight
    found = sizes.weights(chosen)
    assert sum(found) == pytest.approx(1)
    assert found == pytest.approx(list(want.values()), abs=0.02)


def test_a_usual_size_is_in_the_range() -> None:
    assert SizeRange(1, 512).usual == 23
    assert SizeRange(0, 64, 32).usual == 32 and SizeRange(0, 3).usual in SizeRange(0, 3)
    assert OBSERVED.usual == 8


@pytest.mark.parametrize("given", [5, None, "1x3", b"13", {1: 3}])
def test_what_is_no_shape_is_refused(given: object) -> None:
    with pytest.raises(UsageError, match="is not the shape of x") as caught:
        shape_of(given, "x")  # type: ignore[arg-type]
    assert caught.value.hint
