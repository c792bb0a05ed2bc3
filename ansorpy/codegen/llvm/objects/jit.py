"""Load object code into this process."""

from __future__ import annotations

import atexit
import ctypes
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.functions import TEAM
from ansorpy.codegen.llvm.objects.perf_map import functions_of, write_map
from ansorpy.codegen.llvm.threads.team import STOP, needs_team, team_object
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.codegen.singletons import singleton
from ansorpy.config import PERF
from ansorpy.errors import CodegenError
from ansorpy.target import Target

if TYPE_CHECKING:
    from llvmlite import binding

__all__ = ["LoadedObjects", "load"]

_names = itertools.count()


class LoadedObjects:
    """Loaded objects; addresses are valid until :meth:`close` or garbage collection."""

    def __init__(self, tracker: binding.orcjit.ResourceTracker, symbols: Iterable[str]) -> None:
        self._tracker: binding.orcjit.ResourceTracker | None = tracker
        self._addresses = {symbol: int(tracker[symbol]) for symbol in symbols}

    def address(self, symbol: str) -> int:
        """The address of *symbol*, a function the objects define.

        Raises:
            CodegenError: The library was closed or does not export *symbol*.
        """
        if self._tracker is None:
            raise CodegenError(f"the library that held {symbol} was closed")
        if symbol not in self._addresses:
            known = ", ".join(sorted(self._addresses))
            raise CodegenError(f"no function {symbol} was loaded; there are {known}")
        return self._addresses[symbol]

    def close(self) -> None:
        """Unload the objects; calling an address afterwards crashes."""
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            tracker.close()

    def __enter__(self) -> LoadedObjects:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def load(
    objects: Sequence[ObjectCode | bytes],
    *,
    symbols: Sequence[str] = (),
    imports: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
) -> LoadedObjects:
    """Link *objects* into this process.  With ``ANSORPY_PERF``, ``perf`` knows their functions.

    Args:
        objects: Results of ``build``, or raw object files, whose functions *symbols* must name.
        symbols: Functions to look up in addition to those of the :class:`ObjectCode` items.
        imports: Addresses of functions that the objects call and this process already has.
        labels: Names of functions for ``perf``, by symbol.

    Raises:
        CodegenError: A symbol is undefined.
    """
    from llvmlite import binding

    images = [item.code if isinstance(item, ObjectCode) else bytes(item) for item in objects]
    wanted = [item.symbol for item in objects if isinstance(item, ObjectCode)] + list(symbols)
    builder = binding.orcjit.JITLibraryBuilder()
    for image in images:
        builder.add_object_img(image)
    builder.add_current_process()
    given = dict(imports or {})
    if TEAM not in (*wanted, *given) and any(needs_team(image) for image in images):
        given[TEAM] = _team().address(TEAM)
    for symbol, address in given.items():
        builder.import_symbol(symbol, address)
    is_mapped = PERF.get()
    if is_mapped:
        wanted += [f.name for image in images for f in functions_of(image) if f.is_global]
    for symbol in dict.fromkeys(wanted):
        builder.export_symbol(symbol)
    try:
        tracker = builder.link(_linker(), f"ansorpy.{next(_names)}")
    except RuntimeError as error:
        raise CodegenError(f"the object code cannot be loaded: {error}") from error
    library = LoadedObjects(tracker, wanted)
    if is_mapped:
        write_map(images, library.address, labels or {})
    return library


@singleton
def _linker() -> binding.LLJIT:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.create_lljit_compiler(suppress_errors=True)


@singleton
def _team() -> LoadedObjects:
    """The threads of this process's parallel loops."""
    team = load([team_object(Target.host(), ends_with_library=False)], symbols=[TEAM, STOP])
    # Stop the threads before the interpreter frees the code they run.
    atexit.register(ctypes.CFUNCTYPE(None)(team.address(STOP)))
    return team
