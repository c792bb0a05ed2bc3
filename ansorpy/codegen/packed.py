"""A program of another kind packed as object code: a description as JSON, then compiled code.

Code that stores, sends and compares CPU object code can thus handle such programs as well.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from ansorpy.errors import ForeignFile, UsageError

__all__ = ["Packing"]

_LENGTH_BYTES = 8

T = TypeVar("T")


@dataclass(frozen=True)
class Packing(Generic[T]):
    """How *what* (as in "a GPU program") is packed: *mark*, a *description*, and compiled code."""

    what: str
    mark: bytes
    description: type[T]

    def pack(self, description: T, compiled: bytes) -> tuple[bytes, str]:
        """The bytes of a program, and their digest."""
        text = self._json.dump_json(description)
        whole = self.mark + len(text).to_bytes(_LENGTH_BYTES, "little") + text + compiled
        return whole, hashlib.blake2b(whole, digest_size=16).hexdigest()

    def is_packed(self, code: bytes) -> bool:
        return code.startswith(self.mark)

    def unpack(self, code: bytes) -> tuple[T, bytes]:
        """The description and the compiled code in *code*.

        Raises:
            ForeignFile: It is not packed so, or is damaged.
        """
        start = len(self.mark) + _LENGTH_BYTES
        end = start + int.from_bytes(code[len(self.mark) : start], "little")
        if not self.is_packed(code) or end > len(code):
            raise ForeignFile(f"not {self.what}")
        try:
            return self._json.validate_json(code[start:end]), code[end:]
        except ValidationError as error:
            raise ForeignFile(f"not {self.what}: {error.errors()[0]['msg']}") from None
        except UsageError as error:
            raise ForeignFile(f"not {self.what}: {error}") from None

    @cached_property
    def _json(self) -> TypeAdapter[T]:
        return TypeAdapter(self.description)
