"""A schedule as text: loops, steps, the program, or generated code."""

from __future__ import annotations

from ansorpy.codegen.backends import codegen_of
from ansorpy.errors import UsageError
from ansorpy.ir.text.printer import text
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["DEFINITION", "FORMS", "program_text", "require_form"]

DEFINITION = "definition"
FORMS = (DEFINITION, "nest", "steps", "program")
"""The forms that every schedule has; its target's backend adds those of generated code."""


def require_form(form: str, target: Target) -> None:
    """Raise :class:`UsageError` for a *form* that programs for *target* do not have."""
    known = (*FORMS, *codegen_of(target).forms)
    if form not in known:
        raise UsageError(
            f"a program for {target.name} cannot be shown as {form!r}",
            hint=f"use one of {', '.join(known)}",
        )


def program_text(state: State, form: str, target: Target, *, prefetch: bool = False) -> str:
    """*state* as *form*, which is one of :data:`FORMS` or of those that *target* has.

    *prefetch*: as the code is generated for data that are far from the caches.
    """
    if form == "nest":
        return state.text()
    if form == "steps":
        return str(state.history)
    if form == DEFINITION:
        return text(state.definition)
    program = lower(state).run
    if form == "program":
        return text(program)
    return codegen_of(target).forms[form].of(program, target, "kernel", prefetch)
