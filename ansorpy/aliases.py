"""Pairs of an output and the input whose memory it shares, as users write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ansorpy.errors import UsageError

__all__ = ["matching_pairs", "named_alias"]

_HINT = "write present=past, or present.*.key=past.*.key, where each * stands for the same text"


def named_alias(item: str) -> tuple[str, str]:
    """``("present", "past")`` from ``present=past``: an output, and the input that it continues.

    Raises:
        UsageError: It is no such pair.
    """
    output, sign, given = item.partition("=")
    if not (output and sign and given):
        raise UsageError(f"{item!r} does not pair an output with an input", hint=_HINT)
    return output, given


def matching_pairs(
    aliases: Mapping[str, str], outputs: Sequence[str], inputs: Sequence[str]
) -> dict[str, str]:
    """The input of each output that *aliases* pair, where patterns stand for several.

    Raises:
        UsageError: A name is unknown, one is paired twice, or a pattern fits nothing.
    """
    found: dict[str, str] = {}
    for output, given in aliases.items():
        for name, other in _pairs(output, given, outputs).items():
            _require("output", name, outputs)
            _require("input", other, inputs)
            if name in found:
                raise _twice(name, found[name], other)
            if other in found.values():
                raise UsageError(
                    f"two outputs cannot share the memory of input {other!r}",
                    hint="pair each input with one output",
                )
            found[name] = other
    return found


def _pairs(output: str, given: str, outputs: Sequence[str]) -> dict[str, str]:
    if not isinstance(given, str):
        raise UsageError(f"output {output!r} is paired with {given!r}, no name", hint=_HINT)
    if "*" not in output or output in outputs:
        return {output: given}
    stars = output.count("*"), given.count("*")
    if stars[0] != stars[1]:
        raise UsageError(
            f"{output}={given} has {stars[0]} * before = and {stars[1]} behind it", hint=_HINT
        )
    pattern = "(.+)".join(map(re.escape, output.split("*")))
    matches = {name: re.fullmatch(pattern, name) for name in outputs}
    found = {name: _filled(given, match) for name, match in matches.items() if match is not None}
    if not found:
        raise UsageError(f"no output is called {output}", hint=_list(outputs))
    return found


def _filled(pattern: str, match: re.Match[str]) -> str:
    first, *parts = pattern.split("*")
    return first + "".join(text + part for text, part in zip(match.groups(), parts, strict=True))


def _twice(output: str, first: str, second: str) -> UsageError:
    return UsageError(
        f"output {output!r} is paired twice: {first!r} and {second!r}",
        hint="pair each output with one input",
    )


def _require(kind: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UsageError(f"the network has no {kind} {name!r}", hint=_list(known))


def _list(known: Sequence[str]) -> str:
    return f"it has {', '.join(map(repr, known)) or 'none'}"
