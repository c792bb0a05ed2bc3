"""Signatures of what this user measured on this machine.

A tuning database is a file that anyone can write.  What it claims is believed (times, correctness,
object code, proofs) only with a signature by the key in the user's state folder; everything else
in it is a hint, which is built, checked and measured again before it is used.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import shlex
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import mkstemp

from ansorpy.config import state_folder
from ansorpy.errors import UsageError

__all__ = ["Part", "is_signed", "is_signed_by", "own_key", "sign"]

Part = str | bytes | float | None
"""A part of a statement: a text or its UTF-8 bytes, a number, or nothing."""

_BYTES = 32
_LOG = logging.getLogger(__name__)


def own_key() -> bytes:
    """The key of this user, which is made on first use.

    Raises:
        UsageError: Others can read the key, so that anyone could have signed with it.
    """
    return _key(state_folder())


def sign(subject: str, *parts: Part) -> str:
    """The signature of a statement: *subject* says what its *parts* mean.

    Raises:
        UsageError: As :func:`own_key`.
    """
    return _signature(own_key(), subject, parts)


def is_signed(signature: object, subject: str, *parts: Part) -> bool:
    """Whether *signature* is :func:`sign`'s of this statement."""
    return is_signed_by(own_key(), signature, subject, *parts)


def is_signed_by(key: bytes, signature: object, subject: str, *parts: Part) -> bool:
    """Whether *signature* is that of this statement by the owner of *key*."""
    expected = _signature(key, subject, parts).encode()
    found = signature.encode() if isinstance(signature, str) else signature
    return isinstance(found, bytes) and hmac.compare_digest(expected, found)


def _signature(key: bytes, subject: str, parts: tuple[Part, ...]) -> str:
    return hmac.new(key, _statement(subject, parts), hashlib.sha256).hexdigest()


def _statement(subject: str, parts: tuple[Part, ...]) -> bytes:
    """Bytes that differ for different statements: each part with its kind and its length."""
    return b"".join(map(_encoded, (subject, *parts)))


def _encoded(part: Part) -> bytes:
    if part is None:
        return b"-"
    if isinstance(part, float | int):
        return b"f" + float(part).hex().encode() + b";"
    data = part.encode(errors="replace") if isinstance(part, str) else part
    return b"t%d:" % len(data) + data


@lru_cache(maxsize=8)
def _key(folder: Path) -> bytes:
    """The key in *folder*, made on first use; one for this process if it cannot be kept there."""
    path = folder / "signing.key"
    try:
        with suppress(FileNotFoundError):
            return _read(path)
        _make(path)
        return _read(path)
    except OSError as error:
        _LOG.warning(
            "cannot keep a key in %s (%s): later runs will measure again what this one records",
            path, error.strerror,
        )  # fmt: skip
        return secrets.token_bytes(_BYTES)


def _make(path: Path) -> None:
    """Write a new key to *path*, unless another process was faster."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, made = mkstemp(dir=path.parent)  # only its owner can read it
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
        with suppress(FileExistsError):
            os.link(made, path)
    finally:
        os.unlink(made)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        key = file.read(_BYTES)
    if mode & 0o077 or len(key) < _BYTES:
        raise UsageError(
            f"{path} is not a private key: others can read it, or it is too short",
            hint=f"chmod 600 {shlex.quote(str(path))}, or delete it if others could have used it",
        )
    return key
