"""A compiled library as the model argument of ``run``, ``bench`` and ``verify``.

Running a library imports this module, so nothing here may import the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from ansorpy.api.arguments import HostLookupArguments, LookupArguments
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.evaluation.inputs import port_shapes
from ansorpy.options import stated
from ansorpy.runtime.library.shared_library import read_library
from ansorpy.size_ranges import AnySize, shape_of, size_of

__all__ = ["is_library", "library_shapes", "stated_sizes"]


def is_library(path: Path) -> bool:
    """Whether *path* is a compiled library, by its first bytes; False for an unreadable file.

    Raises:
        ForeignFile: It is one, but has the name of a network, which is data: nobody expects code.
    """
    try:
        with path.open("rb") as file:
            found = file.read(4) == b"\x7fELF"
    except OSError:
        return False
    if found and path.suffix.lower() == ".onnx":
        raise ForeignFile(
            f"{path} is not an ONNX file but a library, which is code",
            hint="if you would run its author's programs, give it a name that ends in .so",
        )
    return found


def library_shapes(path: Path, arguments: HostLookupArguments) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs of the library *path* at the sizes that *arguments* state.

    Raises:
        UsageError: A dimension of the library has no size.
    """
    metadata, *_ = read_library(path)
    return port_shapes(metadata.input_ports, arguments.get("dims") or {})


def stated_sizes(
    path: Path,
    arguments: HostLookupArguments,
    named: Mapping[str, Set[AnySize]] | None = None,
) -> Mapping[str, AnySize]:
    """The sizes in *arguments* of the dimensions that calls of the library *path* state.

    Args:
        named: The sizes that the library has for dimensions of the network it was made from.

    Raises:
        UsageError: The user gave other sizes than the library has, or a name that is unknown.
    """
    _refuse_fixed(path, arguments)
    sizes = {name: size_of(n, name) for name, n in (arguments.get("dims") or {}).items()}
    shapes = {name: shape_of(s, name) for name, s in (arguments.get("shapes") or {}).items()}
    if not (sizes or shapes):
        return {}
    own, open_dims = library_shapes(path, arguments), read_library(path)[0].named_dims
    wrong = [
        f"--shape {_shown(name, shape)} (shapes= in Python)"
        for name, shape in shapes.items() if own.get(name) != shape
    ]  # fmt: skip
    stated = {name: size for name, size in sizes.items() if name in open_dims}
    known = {**(named or {}), **{name: {size} for name, size in stated.items()}}
    wrong += [
        f"--dim {name}={size} (dims= in Python)"
        for name, size in sizes.items() if known.get(name) != {size}
    ]  # fmt: skip
    if wrong:
        takes = ", ".join(_shown(name, shape) for name, shape in own.items())
        raise UsageError(
            f"{path} is a library for inputs {takes}: {wrong[0]} cannot change that",
            hint="leave it out, or compile another library with it",
        )
    return stated


_FIXED = {
    "alias": "which tensors share memory is",
    "constants": "which inputs are constant is",
    "bounds": "the sizes for which there is room are",
    "precision": "the precision is",
    "target": "the target is",
}
"""Arguments that a library was compiled with, and what they decide."""


def _refuse_fixed(path: Path, arguments: HostLookupArguments) -> None:
    """Raise :class:`UsageError` if *arguments* say what is fixed in the library *path*."""
    for argument in stated(LookupArguments, arguments):
        if argument.name in _FIXED:
            raise UsageError(
                f"{_FIXED[argument.name]} fixed in the library {path}",
                hint=f"leave out {argument.flag} ({argument.name}= in Python), or compile another "
                "library with it",
            )


def _shown(name: str, shape: Sequence[AnySize]) -> str:
    return f"{name}={'x'.join(map(str, shape))}"
