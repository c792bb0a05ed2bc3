"""Operators that users define by functions of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.graph.ops.base import Op, Pattern, TensorType
from ansorpy.graph.ops.movement import Moved
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dag import loads_of
from ansorpy.ir.loops import Buffer
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.tensor import ComputeOp, Tensor, placeholder
from ansorpy.registry import described_error

__all__ = ["Attribute", "Custom", "reads", "unread"]

Attribute: TypeAlias = int | float | str | tuple[int | float | str, ...]
"""What a function of an operator gets for an attribute."""


@dataclass(frozen=True)
class Custom(Op):
    """Result number ``index`` of the operator ``name``, which ``function`` defines.

    ``operands`` says what the function gets for each operand: an input (True), None (False), or a
    tensor of a type that this result does not read.  It gets ``attributes`` as keywords.
    """

    name: str
    function: Callable[..., object]
    attributes: tuple[tuple[str, Attribute], ...] = ()
    operands: tuple[bool | TensorType, ...] = (True,)
    index: int = 0
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        made = self.results(list(map(unread, inputs)))[self.index]
        return TensorType(made.shape, made.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """The stages that the function makes, under names that no other stage has."""
        return _Named(inputs, names).stage(self.results(inputs)[self.index])

    @property
    def label(self) -> str:
        return re.sub(r"\W", "_", self.name.rpartition(".")[2]).lower()

    def results(self, inputs: Sequence[Tensor]) -> tuple[ComputeOp, ...]:
        """What the function makes of *inputs*.

        Raises:
            UsageError: The function fails, or does not return computed tensors, or these read
                tensors other than *inputs*.
        """
        present = iter(inputs)
        arguments = [
            unread(held) if isinstance(held, TensorType) else next(present) if held else None
            for held in self.operands
        ]
        given = [x for x in arguments if x is not None]
        try:
            made = self.function(*arguments, **dict(self.attributes))
        except AnsorpyError:
            raise
        except Exception as error:  # the function may raise anything
            shapes = ", ".join(str([*x.shape]) for x in given)
            raise UsageError(
                f"the function of operator {self.name} failed on operands {shapes}: "
                f"{described_error(error, _file(self.function))}"
            ) from error
        every = tuple(made) if isinstance(made, tuple | list) else (made,)
        for one in every:
            self._check(one, given)
        return every

    def _check(self, made: object, operands: Sequence[Tensor]) -> None:
        if not isinstance(made, ComputeOp):
            what = f"the operand {made.name}" if isinstance(made, Tensor) else repr(made)
            raise UsageError(
                f"the function of operator {self.name} returned {what}, which ap.compute did not "
                "make",
                hint="return what ap.compute returns, or a tuple of such, one for each output",
            )
        strangers = sorted({
            op.name for op in _stages(made, operands) if not isinstance(op, ComputeOp)
        })  # fmt: skip
        if strangers:
            raise UsageError(
                f"the function of operator {self.name} reads {', '.join(strangers)}, which is none "
                "of its operands",
                hint="make it an operand of the operator, or write its values into the definition",
            )


def unread(kind: TensorType) -> Tensor:
    """An operand of which only the type is read."""
    return placeholder(kind.shape, kind.dtype, name="x")


def _file(function: Callable[..., object]) -> str:
    code = getattr(function, "__code__", None)
    return "" if code is None else str(code.co_filename)


def _sources(operands: Sequence[Tensor]) -> set[Tensor]:
    """The tensors that hold the elements of *operands*, which may be views."""
    found = set()
    for operand in operands:
        while isinstance(operand, Moved):
            operand = operand.source
        found.add(operand)
    return found


def reads(last: Tensor, operand: Tensor) -> bool:
    """Whether *last* depends on *operand*."""
    return operand in _stages(last, ())


def _stages(last: Tensor, operands: Sequence[Tensor]) -> list[Tensor]:
    """*last* and the tensors that it depends on, without *operands*; producers come first."""
    done, found = _sources(operands), []
    waiting = [last]
    while waiting:
        op = waiting[-1]
        needed = [t for t in loads_of(op) if t not in done] if isinstance(op, ComputeOp) else []
        waiting.extend(needed)
        if not needed:
            waiting.pop()
            if op not in done:
                done.add(op)
                found.append(op)
    return found


class _Named(Rewriter):
    """Gives stages that read *operands* names of their own."""

    def __init__(self, operands: Sequence[Tensor], names: Names):
        super().__init__()
        self.operands, self.names = operands, names
        self._made: dict[Tensor, Tensor] = {}

    def stage(self, last: ComputeOp) -> ComputeOp:
        """*last*, and what it depends on, under fresh names."""
        renamed = last
        for op in _stages(last, self.operands):
            assert isinstance(op, ComputeOp)
            name = self.names.fresh(op.name)
            renamed = ComputeOp(
                name, op.shape, op.axes, op.reduce_axes, self.expr(op.body), op.attrs
            )
            self._made[op] = renamed
        return renamed

    def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
        assert isinstance(source, Tensor)
        return self._made.get(source, source)
