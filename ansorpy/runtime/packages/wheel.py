"""Write a Python wheel of a library: a package that needs numpy alone.

Format: https://packaging.python.org/specifications/binary-distribution-format/
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from pathlib import Path

from ansorpy.ir.dtypes import DType
from ansorpy.ir.narrow import element_type
from ansorpy.runtime.library.shared_library import read_library
from ansorpy.runtime.packages.platform_tag import platform_tag
from ansorpy.runtime.packages.signature import (
    NamedPort,
    demand_module,
    demand_packable,
    named_ports,
)
from ansorpy.runtime.ports import MAX_RANK, described
from ansorpy.runtime.status import Status
from ansorpy.runtime.templates import rendered
from ansorpy.target import Target
from ansorpy.writable import demand_folders, replacing

__all__ = ["write_wheel"]

_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""Of all files, so that equal libraries make equal wheels."""
_ENDS_TEXT = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')
"""What a text in Python's source cannot hold as it is: quotes, backslashes, and control
characters, of which some end lines and files."""


def write_wheel(library: Path, folder: Path, version: str) -> Path:
    """Write the wheel of the shared *library* into *folder*; returns its path.

    Raises:
        ForeignFile: The file is not a library that ansorpy made.
        UsageError: Its calls cannot be offered in Python, or *folder* cannot be written.
        OSError: The file cannot be written.
    """
    metadata, _, _ = read_library(library)
    demand_packable(metadata, library)
    demand_module(metadata.name)
    name, inputs, outputs = metadata.name, *named_ports(metadata)
    project = re.sub(r"_+", "_", name).strip("_")  # as pip demands it
    arch = (metadata.target.triple or Target.host().triple).split("-")[0]
    tag = f"py3-none-{platform_tag(library, arch)}"
    needs = ["numpy>=1.25"]
    if any(_needs_ml_dtypes(named) for named in (*inputs, *outputs)):
        needs.append("ml_dtypes")
    values = {
        "name": name, "project": project, "version": version, "tag": tag, "needs": needs,
        "library": library.name,
        "inputs": list(map(_described, inputs)), "outputs": list(map(_described, outputs)),
        "input_names": [named.name for named in inputs], "ansorpy": metadata.ansorpy,
        "max_rank": MAX_RANK, "statuses": list(Status), "wrong_shape": Status.WRONG_SHAPE.value,
        "result": _result([f"NDArray[{_type(named)}]" for named in outputs]),
    }  # fmt: skip
    made = f"{project}-{version}.dist-info"
    path = folder / f"{project}-{version}-{tag}.whl"
    demand_folders(folder)
    records = list[tuple[str, str, int | str]]()
    with replacing(path) as whole, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(file: str, data: bytes) -> None:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append((file, f"sha256={digest}", len(data)))
            archive.writestr(_entry(file), data)

        for file, template in (
            (f"{name}/__init__.py", "wheel_init.py.j2"), (f"{name}/_model.py", "wheel_model.py.j2"),
            (f"{made}/METADATA", "wheel_metadata.j2"), (f"{made}/WHEEL", "wheel_tags.j2"),
        ):  # fmt: skip
            add(file, rendered(template, values).encode())
        add(f"{name}/py.typed", b"")
        add(f"{name}/{library.name}", library.read_bytes())
        records.append((f"{made}/RECORD", "", ""))
        listed = io.StringIO()
        csv.writer(listed, lineterminator="\n").writerows(records)
        archive.writestr(_entry(f"{made}/RECORD"), listed.getvalue())
    return path


def _entry(file: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(file, _EARLIEST)
    info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
    return info


def _needs_ml_dtypes(named: NamedPort) -> bool:
    kind = element_type(named.port.dtype.name)
    return not isinstance(kind, DType) or kind is DType.BFLOAT16


def _described(named: NamedPort) -> dict[str, object]:
    text = described(named.port.shape, named.port.dtype)
    return {"name": named.name, "text": _ENDS_TEXT.sub("'", text), "type": _type(named)}


def _type(named: NamedPort) -> str:
    """The type of elements, as Python says it."""
    if _needs_ml_dtypes(named):
        return "Any"
    dtype = named.port.dtype.name
    return "np.bool_" if dtype == "bool" else f"np.{dtype}"


def _result(types: list[str]) -> str:
    return types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
