"""Names and types of a library's tensors in the languages of packages."""

from __future__ import annotations

import ctypes
import keyword
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from ctypes.util import find_library
from dataclasses import dataclass

from ansorpy.errors import UsageError
from ansorpy.ir.narrow import Narrow, element_type
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.ports import Port

__all__ = [
    "NamedPort", "demand_header", "demand_module", "demand_namespace", "demand_packable",
    "demand_version", "named_ports",
]  # fmt: skip

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires return short signed
sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_MEMBERS = "model run plan threads shapes shape error prepare bind require found"
_PRIVATE = frozenset({"inputs_", "outputs_", "context_", "threads_"})
_OF_HEADERS = """
EOF FILE NULL alloca at_quick_exit atexit drand48_data fd_mask fd_set lconv linux obstack
random_data timespec timeval tm u_char u_int u_long u_short uint ulong unix ushort va_list
"""
"""Names that C's headers or compilers define, and that no shared library has."""
_NO_PARAMETERS = frozenset(f"{_KEYWORDS} {_MEMBERS} {_OF_HEADERS}".split())
_NO_NAMESPACES = frozenset(f"{_KEYWORDS} {_OF_HEADERS} main std".split())
_HEADERS = """
aio alloca assert byteswap complex cpio ctype dirent dlfcn endian errno error fcntl features fenv
float fmtmsg fnmatch ftw getopt glob grp iconv inttypes iso646 langinfo libgen libintl limits link
locale malloc math memory monetary mqueue netdb nl_types poll pthread pwd regex sched search
semaphore setjmp signal spawn stdalign stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio
stdlib stdnoreturn string strings syscall syslog tar termios tgmath threads time uchar ulimit unistd
utime utmpx wchar wctype wordexp
"""
"""Headers ``<name>.h`` of C and POSIX."""
_NO_HEADERS = frozenset(_HEADERS.split())
_NO_MODULES = sys.stdlib_module_names | {"numpy", "ml_dtypes"}

_RENAMED = "export it under another name"


@dataclass(frozen=True)
class NamedPort:
    """A tensor under a name that is a parameter's in Python and in C++."""

    port: Port
    name: str

    @property
    def is_fixed(self) -> bool:
        """Whether its shape is the same in all calls."""
        return all(isinstance(extent, int) for extent in self.port.shape)

    @property
    def shape_text(self) -> str:
        """Its shape for a comment."""
        return f"[{', '.join(map(str, self.port.shape))}]"


def named_ports(
    metadata: Metadata, beside: Sequence[str] = ()
) -> tuple[list[NamedPort], list[NamedPort]]:
    """The inputs and outputs of a library, each with a name of its own.

    So are the names that it makes with each of the endings *beside*.
    """
    taken = set(_PRIVATE)
    ports = [*metadata.input_ports, *metadata.output_ports]
    found = [NamedPort(port, _name(port.name, taken, ("", *beside))) for port in ports]
    count = len(metadata.input_ports)
    return found[:count], found[count:]


def _name(given: str, taken: set[str], endings: Sequence[str]) -> str:
    name = re.sub(r"\W", "_", given, flags=re.ASCII).strip("_") or "tensor"
    if name[0].isdigit() or keyword.iskeyword(name) or name in _NO_PARAMETERS:
        name = f"tensor_{name}"
    while not taken.isdisjoint(name + ending for ending in endings):
        name += "_"
    taken.update(name + ending for ending in endings)
    return name


def demand_version(version: str) -> None:
    """Refuse a *version* that packages cannot have.

    Raises:
        UsageError: It is not numbers with dots between them.
    """
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        raise UsageError(f"{version!r} is not a version", hint="write numbers and dots: 1.2.0")


def demand_namespace(name: str) -> None:
    """Refuse a library whose *name* no namespace of C++ can have.

    Raises:
        UsageError: It is a word of the language, or the C library has a function or a type of this
            name, which headers declare outside of any namespace.  Types may end in ``_t``.
    """
    if name in _NO_NAMESPACES or name.endswith("_t") or _is_of_libc(name):
        raise UsageError(
            f"no namespace of C++ can be called {name!r}, as this library is",
            hint=_RENAMED,
        )


def _is_of_libc(name: str) -> bool:
    """Whether C's library, or the part of it for mathematics, has a function or variable *name*."""
    for library in map(ctypes.CDLL, map(find_library, ("c", "m"))):
        with suppress(ValueError):
            ctypes.c_char.in_dll(library, name)
            return True
    return False


def demand_header(stem: str) -> None:
    """Refuse a library whose header ``<stem>.h`` would hide one of the C library.

    Raises:
        UsageError: There is such a header.
    """
    if stem in _NO_HEADERS:
        raise UsageError(f"the header {stem}.h would hide that of C's library", hint=_RENAMED)


def demand_module(name: str) -> None:
    """Refuse a library whose *name* no package of Python can have.

    Raises:
        UsageError: It is a module of Python, or one that the package imports.
    """
    if name in _NO_MODULES:
        raise UsageError(
            f"no wheel can be called {name!r}, as this library is: Python has such a module",
            hint=_RENAMED,
        )


def demand_packable(metadata: Metadata, path: object) -> None:
    """Refuse a library whose calls need more than arrays in and arrays out.

    Raises:
        UsageError: Some outputs are in the memory of inputs, or elements are smaller than bytes.
    """
    if metadata.aliases:
        raise UsageError(
            f"{path} has outputs in the memory of inputs, which packages do not offer",
            hint="call it through its C header",
        )
    for port in (*metadata.input_ports, *metadata.output_ports):
        kind = element_type(port.dtype.name)
        if isinstance(kind, Narrow) and kind.in_a_byte > 1:
            raise UsageError(
                f"{port.name!r} of {path} has several elements in a byte, which packages do not "
                "offer",
                hint="call it through its C header",
            )
