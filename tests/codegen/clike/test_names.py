"""Identifiers close to the names of variables and buffers."""

from __future__ import annotations

from ansorpy.codegen.clike.names import Names, Words, identifier
from ansorpy.ir.expr import Var

WORDS = Words(frozenset({"float", "floor_div"}), ("mma_",))


def test_names_are_c() -> None:
    assert identifier("i.0@j.0@", WORDS) == "i_0_j_0"
    assert identifier("2nd", WORDS) == "_2nd" and identifier("@", WORDS) == "v"
    assert identifier("naïve", WORDS) == "na_ve"


def test_reserved_words_are_avoided() -> None:
    found = [identifier(name, WORDS) for name in ("float", "floor_div", "mma_4", "floats")]
    assert found == ["float_", "floor_div_", "mma_4_", "floats"]


def test_names_are_free_again_after_their_block() -> None:
    names, i = Names(WORDS), Var("i")
    assert names.give(i) == "i"
    with names.block():
        assert names.give(Var("i")) == "i_1"
    assert names.give(Var("i")) == "i_1" and names.of(i) == "i"
