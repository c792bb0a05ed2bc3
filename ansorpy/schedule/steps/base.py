"""The base class of steps, and how a step declares the numbers that it leaves open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from enum import Enum
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar, get_type_hints

from ansorpy.errors import ScheduleError
from ansorpy.schedule.decisions import Decision, OneOf, Product

if TYPE_CHECKING:
    from ansorpy.schedule.stage import Stage
    from ansorpy.schedule.state import State

__all__ = [
    "Choice", "Count", "Number", "Step", "choice", "compute_stage", "named", "options", "some",
]  # fmt: skip

E = TypeVar("E", bound=Enum)

Count: TypeAlias = int | OneOf
"""A number, or an open choice of one."""

Number: TypeAlias = Count | None
"""As :data:`Count`; None is open too, and the step that holds it decides its domain."""

_CHOICE = "choice"


@dataclass(frozen=True)
class Choice:
    """The declaration of a step's field whose numbers may be open.

    ``column`` names the table column of number ``{k}`` of the field (counted from 1), in terms of
    the step's other fields.  ``least`` is the least allowed number.  With ``keyword`` the
    primitive takes the field as a keyword argument.
    """

    column: str
    least: int
    keyword: bool


def choice(column: str, least: int, *, keyword: bool = False) -> dict[str, Choice]:
    """The metadata of a field whose value is a :data:`Count` or a tuple of :data:`Number`.

    ``resolve``, ``numbers``, ``skeleton``, the printed call and the record form of the step use it.
    """
    return {_CHOICE: Choice(column, least, keyword)}


@dataclass(frozen=True)
class Step:
    """One recorded primitive; it refers to stages and loops by name, and prints as a call.

    A subclass declares its fields in the order of the primitive's arguments.  A field with a
    default is a keyword argument, printed only if it differs.  ``kind`` is the primitive's name.
    """

    returns_names: ClassVar[bool] = False
    """True if the primitive also returns the loops or the stage that it makes."""

    stage: str

    def __post_init__(self) -> None:
        for field, _ in _form(type(self)).choices:
            given = getattr(self, field)
            many = isinstance(given, tuple)
            plain = tuple(map(self._plain, given)) if many else self._plain(given)
            object.__setattr__(self, field, plain)

    def _plain(self, number: Any) -> Number:
        """*number*, as an int if it is of another integer type, such as NumPy's."""
        if number is None or isinstance(number, int | OneOf):
            return number
        try:
            return index(number)
        except TypeError:
            raise ScheduleError(
                f"{number!r} is not a whole number", step=self.call(), stage=self.stage,
                hint="give an int, or a OneOf of several",
            ) from None  # fmt: skip

    @property
    def kind(self) -> str:
        """The method of :class:`~ansorpy.schedule.state.State` that this step repeats."""
        raise NotImplementedError(type(self).__name__)

    def apply(self, state: State) -> State:
        """The state after this step; raises :class:`~ansorpy.errors.ScheduleError`."""
        raise NotImplementedError(type(self).__name__)

    def error(
        self, state: State, message: str, *, loops: Iterable[str] = (), hint: str | None = None
    ) -> ScheduleError:
        """Why this step cannot be applied to *state*; shows the stage, with *loops* marked."""
        return ScheduleError(
            message, step=self.call(), stage=self.stage,
            program=state.text(self.stage, set(loops)), hint=hint,
        )  # fmt: skip

    def decisions(self, state: State) -> tuple[Decision, ...]:
        """The decisions that this step opens when it is applied to *state*."""
        return tuple(
            Decision(column, (column,), number)
            for column, number in self._numbers()
            if isinstance(number, OneOf)
        )

    def call(self) -> str:
        """This step as the Python statement that repeats it on a variable ``state``."""
        given = [a for a in _form(type(self)).arguments if getattr(self, a.name) != a.default]
        arguments = ", ".join(a.text(getattr(self, a.name)) for a in given)
        result = "state, _" if self.returns_names else "state"
        return f"{result} = state.{self.kind}({arguments})"

    @property
    def open_columns(self) -> tuple[str, ...]:
        """The table columns of the numbers that are open."""
        return tuple(column for column, number in self._numbers() if not isinstance(number, int))

    def resolve(self, values: Mapping[str, int]) -> Self:
        """This step with its open numbers replaced by *values* (column name -> number)."""
        if not self.open_columns:
            return self
        return self._with_numbers(
            lambda column, number: number if isinstance(number, int) else values.get(column, number)
        )

    def numbers(self) -> dict[str, int]:
        """The numbers of this step, by the columns that would hold them if they were open.

        Law: ``open.resolve(open.resolve(values).numbers()) == open.resolve(values)``.
        """
        return {column: n for column, n in self._numbers() if isinstance(n, int)}

    def skeleton(self) -> Self:
        """This step without its numbers; steps that differ in numbers only have equal skeletons."""
        return self._with_numbers(lambda _column, _number: None)

    def products(self, state: State) -> tuple[Product, ...]:
        """The numbers of this step as products; an open number is represented by its column.

        Raises:
            ScheduleError: A number, or one of the choices, is less than the field allows.
        """
        for field, declared in _form(type(self)).choices:
            given = _as_tuple(getattr(self, field))
            least = min((n for number in given for n in options(number)), default=declared.least)
            if least < declared.least:
                raise self.error(
                    state, f"{least} is too small; the least number allowed is {declared.least}"
                )
        return tuple((n,) if isinstance(n, int) else (column,) for column, n in self._numbers())

    def _numbers(self) -> Iterator[tuple[str, Number]]:
        """Each number of the declared fields with its column, in order."""
        for field, declared in _form(type(self)).choices:
            for k, number in enumerate(_as_tuple(getattr(self, field)), start=1):
                yield declared.column.format(k=k, **vars(self)), number

    def _with_numbers(self, change: Callable[[str, Number], Number]) -> Self:
        changed = iter([change(column, number) for column, number in self._numbers()])
        new: dict[str, Any] = {}
        for field, _ in _form(type(self)).choices:
            old = getattr(self, field)
            new[field] = (
                tuple(next(changed) for _ in old) if isinstance(old, tuple) else next(changed)
            )
        return replace(self, **new)


@dataclass(frozen=True)
class _Argument:
    """A field of a step as an argument of its primitive."""

    name: str
    default: object
    keyword: bool
    is_name_list: bool

    def text(self, value: Any) -> str:
        source = repr(list(value) if self.is_name_list else value)
        return f"{self.name}={source}" if self.keyword else source


@dataclass(frozen=True)
class _Form:
    """The declarations of the fields of a step class."""

    arguments: tuple[_Argument, ...]
    choices: tuple[tuple[str, Choice], ...]
    """The fields that hold open numbers."""


_FORMS: dict[type[Step], _Form] = {}


def _form(step: type[Step]) -> _Form:
    if step not in _FORMS:
        hints, own = get_type_hints(step), [field for field in fields(step) if field.name != "kind"]
        choices = {f.name: f.metadata[_CHOICE] for f in own if _CHOICE in f.metadata}
        keywords = {name for name, declared in choices.items() if declared.keyword}
        keywords |= {field.name for field in own if field.default is not MISSING}
        arguments = tuple(
            _Argument(f.name, f.default, f.name in keywords, hints[f.name] == tuple[str, ...])
            for f in own
        )
        _FORMS[step] = _Form(arguments, tuple(choices.items()))
    return _FORMS[step]


def _as_tuple(value: Number | tuple[Number, ...]) -> tuple[Number, ...]:
    return value if isinstance(value, tuple) else (value,)


def options(number: Number) -> tuple[int, ...]:
    """What *number* may be; () for None, whose domain is not known here."""
    if isinstance(number, OneOf):
        return number.values
    return () if number is None else (number,)


def compute_stage(state: State, name: str, step: Step) -> Stage:
    """The stage *name*, on which *step* can act only if it has loops.

    Raises:
        ScheduleError: There is no such stage, or it is an input.
    """
    stage = state.stage(name)
    if stage.is_placeholder:
        raise ScheduleError(
            f'"{name}" is a placeholder: an input has no loops and no compute location',
            step=step.call(), stage=name, program=state.text(),
            hint="cache_read makes a stage that copies it",
        )  # fmt: skip
    return stage


def some(what: str, given: Sequence[object], step: Step, state: State) -> None:
    """Check that *step* is *given* one thing of its kind (*what*) or more.

    Raises:
        ScheduleError: *given* is empty.
    """
    if not given:
        raise step.error(state, f"no {what} is named", hint=f"name one {what} or more")


def named(what: str, value: str, step: Step, allowed: Iterable[E]) -> E:
    """The member of *allowed* whose value is *value*.

    Raises:
        ScheduleError: There is none; the message says that *value* is not a *what*.
    """
    known = {member.value: member for member in allowed}
    if value not in known:
        raise ScheduleError(
            f'"{value}" is not a {what}', step=step.call(), stage=step.stage,
            hint=f"it is one of {', '.join(map(str, known))}",
        )  # fmt: skip
    return known[value]
