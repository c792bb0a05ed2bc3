"""A GPU program packed as one object: its launch plan as JSON, then the cubin.

Code that stores, sends and compares CPU object code can thus handle GPU programs as well.
"""

from __future__ import annotations

import hashlib
from functools import cache

from pydantic import TypeAdapter, ValidationError

from ansorpy.codegen.cuda.device.build import CudaCode
from ansorpy.codegen.cuda.launch.plan import LaunchPlan
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import ForeignFile, UsageError

__all__ = ["packed", "unpacked"]

_MARK = b"ansorpy-cuda-1\n"
_LENGTH_BYTES = 8


def packed(code: CudaCode, symbol: str) -> ObjectCode:
    """Pack *code* as an object named *symbol*; :func:`unpacked` is the inverse."""
    plan = _plans().dump_json(code.plan)
    whole = _MARK + len(plan).to_bytes(_LENGTH_BYTES, "little") + plan + code.cubin
    digest = hashlib.blake2b(whole, digest_size=16).hexdigest()
    return ObjectCode(symbol, whole, code.plan.workspace_bytes, 0, code.build_s, digest)


def unpacked(code: bytes) -> tuple[LaunchPlan, bytes]:
    """Unpack the result of :func:`packed`: the launch plan and the cubin.

    Raises:
        ForeignFile: *code* is not a packed GPU program, or is damaged.
    """
    start = len(_MARK) + _LENGTH_BYTES
    end = start + int.from_bytes(code[len(_MARK) : start], "little")
    if not code.startswith(_MARK) or end > len(code):
        raise ForeignFile("not a GPU program")
    try:
        return _plans().validate_json(code[start:end]), code[end:]
    except ValidationError as error:
        raise ForeignFile(f"not a GPU program: {error.errors()[0]['msg']}") from None
    except UsageError as error:
        raise ForeignFile(f"not a GPU program: {error}") from None


@cache
def _plans() -> TypeAdapter[LaunchPlan]:
    return TypeAdapter(LaunchPlan)
