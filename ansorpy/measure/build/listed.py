"""Object code that can also be written as text, for listings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ansorpy.codegen.backends import codegen_of
from ansorpy.measure.build.built import Built
from ansorpy.schedule.lowering.program import Lowered
from ansorpy.target import Target

__all__ = ["listed"]

_LLVM = "llvm"


def listed(
    built: Built, lowered: Callable[[], Lowered], target: Target, *, prefetch: bool = False
) -> Built:
    """*built*, whose functions have a ``listing`` if they come from LLVM.

    Args:
        lowered: The program that *built* was compiled from; called when a listing is written.
        prefetch: As for :func:`ansorpy.measure.build.handlers.build_lowered`.
    """
    form = codegen_of(target).forms.get(_LLVM)
    if form is None:
        return built
    emit = form.of

    def run() -> str:
        return emit(lowered().run, target, built.run.symbol, prefetch)

    def bind() -> str:
        program, bound = lowered().bind, built.bind
        assert program is not None and bound is not None
        return emit(program, target, bound.symbol, False)

    packing = None if built.bind is None else replace(built.bind, listing=bind)
    return replace(built, run=replace(built.run, listing=run), bind=packing)
