"""Where lines of generated C are broken."""

from __future__ import annotations

import pytest

from ansorpy.codegen.clike.line_breaks import MOST_COLUMNS, laid_out

A, B, C = "a" * 40, "b" * 40, "c" * 30
LONG: dict[str, tuple[str, str]] = {
    "sum": (f"x[i] = {A} * {B} + {A} * {B};", f"""\
          x[i] =
              {A} * {B}
              + {A} * {B};"""),
    "accumulated": (f"x[{A} + {B}] += {A} + {B};", f"""\
          x[{A} + {B}] +=
              {A} + {B};"""),
    "choice": (f"x = {A} && {B} ? {A} + {B} : 0;", f"""\
          x =
              {A} && {B}
              ? {A} + {B} : 0;"""),
    "call": (f"copy(&s[{A} + 1], &v[{A} + 2], {B} + 3 < 9);", f"""\
          copy(&s[{A} + 1],
              &v[{A} + 2],
              {B} + 3 < 9);"""),
    "condition": (f"if ({C} < 3 && {C} < 4 || {C} > 5 && {C} > 6) {{", f"""\
          if ({C} < 3 && {C} < 4
              || {C} > 5 && {C} > 6) {{"""),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_long_lines_are_broken_at_the_loosest_place(name: str) -> None:
    text, expected = LONG[name]
    lines = list(laid_out(text, "  "))
    assert "\n".join(lines) == "\n".join(
        line[8:] if line.startswith(" " * 8) else line for line in expected.split("\n")
    )
    assert all(len(line) <= MOST_COLUMNS for line in lines)


@pytest.mark.parametrize(
    "text",
    ["x = 1;", f"for (int {A} = 0; {A} < 3; ++{A}) {{", f"const int {A} = {B} + 1;  // {A} + {B}"],
)
def test_short_lines_loops_and_what_has_a_comment_stay(text: str) -> None:
    assert list(laid_out(text, "    ")) == ["    " + text]


def test_what_cannot_be_broken_stays() -> None:
    assert list(laid_out(f"x = {A}{A}{A};", "")) == ["x =", f"    {A}{A}{A};"]
