"""The file format of learned cost models: a header on their training data, then the trees.

Nothing in it is executed, and every number of the trees is checked (:mod:`ansorpy.cost.trees`), so
a file may come from anyone: a bad one makes searches slower, but no result wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeInt,
    ValidationError,
)

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees, WeightedTrees
from ansorpy.cost.learner import SAMPLE_VERSION
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.target import Target

__all__ = ["SavedModel"]

_FORMAT = "ansorpy-cost-model"
_AGAIN = "train it again: ansorpy dataset train DATA -o model.txt"


class _Header(BaseModel):
    """The first line of the file; ``trees`` has the weight and length of each part after it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str = _FORMAT
    features: str
    family: str
    programs: int = Field(ge=0)
    tasks: int = Field(ge=0)
    trees: tuple[tuple[FiniteFloat, NonNegativeInt], ...]
    digest: str


@dataclass(frozen=True)
class SavedModel:
    """A trained model that searches start from; calling it returns one that continues to learn.

    Args:
        family: :attr:`~ansorpy.target.Target.family` of the machine it was trained for.
        programs: Number of measured programs it was trained on; ``tasks`` is the number of their
            tasks.
        digest: Digest of the trees, which identifies it.
    """

    family: str
    programs: int
    tasks: int
    _trees: tuple[WeightedTrees, ...] = field(repr=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(repr(self._trees).encode()).hexdigest()
        object.__setattr__(self, "digest", digest)

    @staticmethod
    def of(model: BoostedTrees, family: str) -> SavedModel:
        """The trained state of *model*, for saving."""
        return SavedModel(family, len(model.data), len(model.data.tasks), model.trees())

    @property
    def is_trained(self) -> bool:
        """False when it never had enough programs to learn from."""
        return bool(self._trees)

    def __call__(self) -> BoostedTrees:
        alone = BoostedOptions.for_programs(self.programs).alone
        return BoostedTrees(base=self._trees, alone=alone)

    def text(self) -> str:
        """The content of its file, which :meth:`parse` reads."""
        header = _Header(
            features=SAMPLE_VERSION,
            family=self.family,
            programs=self.programs,
            tasks=self.tasks,
            trees=tuple((trees.weight, len(trees.text)) for trees in self._trees),
            digest=self.digest,
        )
        return "\n".join((header.model_dump_json(), *(trees.text for trees in self._trees)))

    @staticmethod
    def read(path: Path) -> SavedModel:
        """Read the model in the file *path*; raises :class:`ForeignFile` if there is none."""
        try:
            text = path.read_text()
        except OSError as error:
            raise ForeignFile.unreadable(path, error) from None
        except UnicodeDecodeError:
            text = ""
        return SavedModel.parse(text, str(path))

    @staticmethod
    def parse(text: str, name: str) -> SavedModel:
        """Parse the :meth:`text` of a model; *name* is its name in error messages.

        Raises:
            ForeignFile: Not a model, damaged, or trained on samples of another version.
        """
        head, _, rest = text.partition("\n")
        found = _model(_header(head, name), rest, name)
        try:
            found()
        except ForeignFile as error:
            raise _damaged(name, str(error)) from None
        return found

    @staticmethod
    def shipped(path: Path) -> SavedModel | None:
        """The model in *path*, a file of this package; None if its features are of another version.

        Raises:
            ForeignFile: It is damaged.
        """
        head, _, rest = path.read_text().partition("\n")
        if json.loads(head).get("features") != SAMPLE_VERSION:
            return None
        return _model(_header(head, str(path)), rest, str(path))

    def demand(self, target: Target) -> None:
        """Raise :class:`UsageError` unless trained on programs for *target*'s kind of machine."""
        if target.family != self.family:
            raise UsageError(
                f"the cost model was trained on programs for {self.family}, "
                f"not for {target.family}",
                hint="train one on records of this target: ansorpy dataset train DATA -o model.txt",
            )


def _header(head: str, name: str) -> _Header:
    """The validated first line, with separate errors for other versions and for non-models."""
    try:
        values = json.loads(head)
    except (RecursionError, ValueError):
        values = None
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        raise ForeignFile(
            f"{name} is not a cost model written by ansorpy",
            hint="ansorpy dataset train DATA -o model.txt writes one",
        )
    if values.get("features") != SAMPLE_VERSION:
        raise ForeignFile(
            f"{name} was trained with features or an analytic model that differ from those of "
            "this version of ansorpy",
            hint=_AGAIN,
        )
    try:
        return _Header.model_validate(values)
    except ValidationError as error:
        raise _damaged(name, error.errors()[0]["msg"]) from None


def _model(header: _Header, text: str, name: str) -> SavedModel:
    """The model of a file with this *header*."""
    found = SavedModel(
        header.family, header.programs, header.tasks, tuple(_parts(text, header.trees))
    )
    if found.digest != header.digest:
        raise _damaged(name, "its trees do not match the digest in its header")
    return found


def _damaged(name: str, how: str) -> ForeignFile:
    return ForeignFile(f"{name} is damaged: {how}", hint=_AGAIN)


def _parts(text: str, trees: Iterable[tuple[float, int]]) -> Iterator[WeightedTrees]:
    """Split *text* into newline-separated parts of the given lengths."""
    start = 0
    for weight, length in trees:
        yield WeightedTrees(weight, text[start : start + length])
        start += length + 1
