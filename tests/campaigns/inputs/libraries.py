"""Damaged libraries and arrays, run in this process."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ansorpy.runtime.library.checksum import SEAL_BYTES, seal
from tests.campaigns.inputs.changes import INTEGERS, TEXTS, changed_bytes, one_of
from tests.campaigns.inputs.sound import LIBRARY, NETWORK, sound_files

__all__ = ["damaged_array", "damaged_library"]

Rng = np.random.Generator

_TYPES = ("<f4", ">f4", "<f8", "<f2", "<i8", "|b1", "|u1", "<c8", "<M8[s]", "|S3", "<U2", "|O", "x")


def damaged_library(rng: Rng, folder: Path) -> list[str]:
    """Write a damaged library into *folder*; returns the command that reads it."""
    for name in (LIBRARY, NETWORK):
        shutil.copy(sound_files() / name, folder)
    path = folder / LIBRARY
    data = path.read_bytes()
    if rng.random() < 0.4:
        path.write_bytes(_other_metadata(data[:-SEAL_BYTES], rng))
        if rng.random() < 0.7:  # whoever forges a library seals it: reading it must be safe
            seal(path)
            return ["verify", "--static", LIBRARY]
    else:
        path.write_bytes(changed_bytes(data, rng))
    return list(one_of(rng, (("run", LIBRARY), ("run", LIBRARY, "--json"),
                             ("verify", "--static", LIBRARY))))  # fmt: skip


def _other_metadata(data: bytes, rng: Rng) -> bytes:
    """*data* with a part of the library's description changed, in as many bytes."""
    start = data.index(b'{"format":"ansorpy-library"')
    end = data.index(b"\0", start)
    text = data[start:end]
    if rng.random() < 0.5:
        number = str(abs(one_of(rng, INTEGERS))).encode()
        places = [n for n, byte in enumerate(text) if chr(byte).isdigit()]
        at = one_of(rng, places)
        text = text[:at] + number + text[at + len(number) :]
    else:
        text = changed_bytes(text, rng)
    return data[:start] + text[: end - start].ljust(end - start) + data[end:]


def damaged_array(rng: Rng, folder: Path) -> list[str]:
    """Write a damaged ``.npy`` or ``.npz`` file into *folder*; returns the command for it."""
    shutil.copy(sound_files() / LIBRARY, folder)
    array = np.ones((3, 7), np.float32)
    name = one_of(rng, ("x.npy", "x.npz"))
    if name == "x.npy" and rng.random() < 0.5:
        data = _npy(rng, array)
    else:
        held = io.BytesIO()
        keyed: dict[str, Any] = {one_of(rng, ("x", "y", "a/../b")): array}
        if name == "x.npy":
            np.save(held, array)
        else:
            (np.savez if rng.random() < 0.5 else np.savez_compressed)(held, **keyed)
        data = changed_bytes(held.getvalue(), rng)
    (folder / name).write_bytes(data)
    return ["run", LIBRARY, "--input", f"x={name}"]


def _npy(rng: Rng, array: np.ndarray[Any, Any]) -> bytes:
    """A file whose header says something odd about its data."""
    shape = one_of(
        rng, ("(3, 7)", "()", "(-1,)", "(3, -7)", f"({one_of(rng, INTEGERS)},)", "(0, 10**9)",
              f"({1 << 40}, {1 << 40})", "[3, 7]", "'x'", "(3.0, 7)", "(" * 300 + ")" * 300)
    )  # fmt: skip
    header = (
        f"{{'descr': {one_of(rng, _TYPES)!r}, 'fortran_order': "
        f"{one_of(rng, ('False', 'True', '3', 'None'))}, 'shape': {shape}, }}"
    )
    if rng.random() < 0.2:
        header = one_of(rng, (header[:-5], header + one_of(rng, TEXTS), "{}", "__import__('os')"))
    said = header.encode("latin1", "replace")
    return b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said + array.tobytes()
