"""Boosted trees as text: LightGBM's format, checked and reduced to what predictions depend on.

LightGBM's parser is written in C++ and trusts the text: the indices of a tree's children, or a
parameter that names a file.  Its input is therefore always composed here, of numbers that were
checked, so a file of trees may come from anyone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import TypeVar

from ansorpy.errors import ForeignFile

__all__ = ["plain_trees"]

T = TypeVar("T", int, float)

_END = "end of trees"


def plain_trees(text: str, features: int) -> str:
    """The trees in *text* without gains, counts and parameters; they give the same predictions.

    Raises:
        ForeignFile: These are no trees on so many *features* that compare a number at each node.
    """
    head, *trees = text.partition(f"\n{_END}")[0].split("\nTree=")
    try:
        if f"\n{_END}" not in text or int(_fields(head)["max_feature_idx"]) != features - 1:
            raise ValueError(f"they are not complete, or not on {features} features")
        parts = [list(_tree(_fields(tree), features)) for tree in trees]
    except (KeyError, ValueError) as error:
        raise ForeignFile(f"the trees of this cost model cannot be read: {error}") from None
    lines = [
        "tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0",
        f"max_feature_idx={features - 1}",
        _line("feature_names", [f"Column_{n}" for n in range(features)]),
        _line("feature_infos", ["none"] * features),
        "",
    ]  # fmt: skip
    for number, part in enumerate(parts):
        lines += [f"Tree={number}", *part, "", ""]
    return "\n".join([*lines, _END, ""])


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in block.splitlines())
    return {name: value for name, equals, value in pairs if equals}


def _tree(fields: dict[str, str], features: int) -> Iterator[str]:
    """The lines of one tree; raises ``KeyError`` or ``ValueError`` if it is none."""
    leaves = int(fields["num_leaves"])
    if leaves < 1 or int(fields["num_cat"]) or int(fields.get("is_linear", 0)):
        raise ValueError("a tree has no leaves, or splits or leaves of other kinds")
    yield f"num_leaves={leaves}"
    yield "num_cat=0"
    if leaves > 1:
        yield from _nodes(fields, leaves - 1, features)
    yield _line("leaf_value", _finite(fields, "leaf_value", leaves))


def _nodes(fields: dict[str, str], nodes: int, features: int) -> Iterator[str]:
    """The lines of a tree's *nodes*: node 0 is the root, leaf ``n`` is the child ``-1 - n``."""
    split = _numbers(fields, "split_feature", nodes, int)
    kinds = _numbers(fields, "decision_type", nodes, int)
    left, right = (_numbers(fields, f"{side}_child", nodes, int) for side in ("left", "right"))
    if not all(0 <= feature < features for feature in split):
        raise ValueError("a node compares a feature that there is not")
    if not all(0 <= kind < 16 and kind % 2 == 0 for kind in kinds):  # the lowest bit: a category
        raise ValueError("a node does not compare a number")
    follows = all(child < 0 or child > n for side in (left, right) for n, child in enumerate(side))
    if not follows or sorted([*left, *right]) != [*range(-nodes - 1, 0), *range(1, nodes)]:
        raise ValueError("its nodes are no tree")
    yield _line("split_feature", split)
    yield _line("threshold", _finite(fields, "threshold", nodes))
    yield _line("decision_type", kinds)
    yield _line("left_child", left)
    yield _line("right_child", right)


def _finite(fields: dict[str, str], name: str, n: int) -> list[float]:
    found = _numbers(fields, name, n, float)
    if not all(map(isfinite, found)):
        raise ValueError(f"{name} is not finite")
    return found


def _numbers(fields: dict[str, str], name: str, n: int, kind: Callable[[str], T]) -> list[T]:
    """The *n* numbers of a field."""
    found = [kind(value) for value in fields[name].split(" ")]
    if len(found) != n:
        raise ValueError(f"{name} has {len(found)} numbers instead of {n}")
    return found


def _line(name: str, values: Sequence[object]) -> str:
    return f"{name}={' '.join(map(str, values))}"
