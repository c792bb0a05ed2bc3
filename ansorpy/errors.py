"""Every error that ansorpy raises on purpose, with the command line's exit code for it.

A message is one plain line: what was asked and why it cannot be done.  ``hint`` suggests what to do
instead.  Errors take programs as text, so this module imports nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "AnsorpyError", "CodegenError", "DeviceLost", "ForeignFile", "Interrupted", "LoweringError",
    "MissingDependency", "NoValidProgram", "OutOfBounds", "ScheduleError", "UnsupportedModel",
    "UnsupportedRow", "UsageError", "VerificationFailed",
]  # fmt: skip


class AnsorpyError(Exception):
    """Base class: ``message`` (what and why), ``hint`` (what to do instead), ``exit_code``."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class UsageError(AnsorpyError):
    """The request itself is wrong: a name, a shape, a type, an option."""

    exit_code = 2


class OutOfBounds(UsageError):
    """A size that the data of a call tell is out of the bounds that a model was compiled for."""


@dataclass(frozen=True)
class UnsupportedRow:
    """What of a model cannot be compiled, for one reason, and what to do instead.

    Args:
        node: The first node, or the tensor.
        op: Its operator; of a tensor, what it is to the model (``input``).
        attribute: The attribute, operand or type at fault.
        shape: The shapes of its operands.
        advice: What to do instead.
        needs: Inputs that need only be constant.
        bound: A tensor that needs only have a bound; empty if there is none.
        domain: That of the operator; empty for onnx's own.
        opset: The version of the operator set.
        count: How many nodes there are.
    """

    node: str
    op: str
    attribute: str = ""
    shape: str = ""
    advice: str = ""
    needs: tuple[str, ...] = ()
    domain: str = ""
    opset: int | None = None
    count: int = 1
    bound: str = ""


class UnsupportedModel(AnsorpyError):
    """The model has parts that cannot be compiled; ``rows`` lists all of them."""

    exit_code = 3

    def __init__(
        self, message: str, *, rows: Sequence[UnsupportedRow] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.rows = tuple(rows)

    @property
    def needs(self) -> tuple[str, ...]:
        """The inputs that must have constant values, if nothing else is missing."""
        if not self.rows or not all(row.needs for row in self.rows):
            return ()
        return tuple(dict.fromkeys(name for row in self.rows for name in row.needs))

    @property
    def bounds(self) -> tuple[str, ...]:
        """The tensors that must have bounds, if nothing else is missing."""
        if not self.rows or not all(row.bound for row in self.rows):
            return ()
        return tuple(dict.fromkeys(row.bound for row in self.rows))

    def __str__(self) -> str:
        parts = [self.message, *table(self.rows)]
        return "\n".join(parts if self.hint is None else [*parts, f"hint: {self.hint}"])


class VerificationFailed(AnsorpyError):
    """An output differs from the reference by more than the tolerance, or contains NaN."""

    exit_code = 4


class MissingDependency(AnsorpyError):
    """This machine lacks something: libgomp, a linker, a GPU, a CPU feature, a package, memory."""

    exit_code = 5


class ForeignFile(AnsorpyError):
    """A file cannot be read, or does not have the expected format or version."""

    exit_code = 6

    @classmethod
    def unreadable(cls, path: object, error: OSError, *, hint: str | None = None) -> ForeignFile:
        """The error for the file *path*, which *error* kept from being read."""
        return cls(f"cannot read {path}: {error.strerror or error}", hint=hint or "check the path")


class ScheduleError(AnsorpyError):
    """A schedule step that cannot be applied.

    Args:
        step: The step, written as the call that makes it: ``"fuse(C, [j, k])"``.
        stage: Name of the stage it applies to.
        program: That stage's loops as text, with the offending ones marked by ``>``.
    """

    def __init__(
        self,
        message: str,
        *,
        step: object = None,
        stage: str | None = None,
        program: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.step = step
        self.stage = stage
        self.program = program

    def __str__(self) -> str:
        lines = [self.message if self.step is None else f"{self.step}: {self.message}"]
        if self.stage is not None:
            lines.append(
                f'in stage "{self.stage}"' + (", before this step:" if self.program else "")
            )
        if self.program:
            lines.append(self.program.rstrip("\n"))
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class LoweringError(AnsorpyError):
    """A schedule cannot be lowered, or a loop program is not well formed."""


class CodegenError(AnsorpyError):
    """A loop program cannot be turned into machine code for the target."""


class DeviceLost(AnsorpyError):
    """The context of a GPU is unusable, as after an access to invalid memory.

    Every further use of the GPU in this process fails; another process may still use it.
    """


class NoValidProgram(AnsorpyError):
    """A search ended without any program that ran and gave correct results."""


class Interrupted(AnsorpyError):
    """The user stopped the work; what was found so far is saved."""

    exit_code = 130


def table(rows: Sequence[UnsupportedRow]) -> list[str]:
    """*rows* as aligned lines of text below a heading; empty when there are no rows.

    What to do about rows is said below them, once for those with the same advice.
    """
    if not rows:
        return []
    cells = [("operator", "opset", "count", "first node", "at fault", "shapes")]
    for row in rows:
        operator = f"{row.domain}.{row.op}" if row.domain else row.op
        opset = "" if row.opset is None else str(row.opset)
        cells.append((operator, opset, str(row.count), row.node, row.attribute, row.shape))
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    found = lines[:1]
    for line, row, after in zip(lines[1:], rows, [*rows[1:], None], strict=True):
        found.append(line)
        if row.advice and (after is None or after.advice != row.advice):
            found.append(f"  {row.advice}")
    return found
