"""A built candidate: object code and parameters, and their form on the wire and in the database."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy.codegen.extent_fields import ExtentField
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import ForeignFile
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import dim_extent, dims_of
from ansorpy.ir.loops import Param, Role
from ansorpy.ir.sizes import Sizes, at, fixed
from ansorpy.ir.symbols import Dim

__all__ = ["Built", "ParamSpec", "built_from_parts"]


class ParamSpec(BaseModel):
    """One parameter of a kernel, in calling order; dense unless it has ``strides``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    shape: tuple[ExtentField, ...]
    dtype: DType
    role: Role
    strides: tuple[ExtentField, ...] | None = None

    @staticmethod
    def of(param: Param) -> ParamSpec:
        b = param.buffer
        return ParamSpec(
            name=b.name, shape=b.shape, dtype=b.dtype, role=param.role, strides=b.strides
        )

    @property
    def bytes(self) -> int:
        """Bytes of a dense tensor whose shape is known."""
        return prod([fixed(extent) for extent in self.shape]) * self.dtype.bytes

    def at(self, sizes: Sizes) -> ParamSpec:
        """The parameter where the dimensions in *sizes* have these sizes."""
        steps = self.strides
        shape = tuple(at(extent, sizes) for extent in self.shape)
        apart = None if steps is None else tuple(at(step, sizes) for step in steps)
        return self.model_copy(update={"shape": shape, "strides": apart})


class _Unit(BaseModel):
    """Header of one function; its code travels separately."""

    model_config = ConfigDict(extra="forbid")

    symbol: str
    shared_bytes: ExtentField
    thread_bytes: int
    build_s: float
    digest: str
    params: list[ParamSpec]


class _Header(BaseModel):
    model_config = ConfigDict(extra="forbid")

    run: _Unit
    bind: _Unit | None
    overwrites: tuple[tuple[int, int], ...]
    dims: tuple[ExtentField, ...] = ()
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Built:
    """Object code of one candidate: ``run``, and ``bind``, which packs its constants.

    A CONSTANT of ``run_params`` is either an OUTPUT of ``bind_params`` or itself a placeholder.
    ``run`` takes the sizes of ``dims`` after its parameters; they are ``sizes`` once all of them
    are chosen (:meth:`at`).  ``overwrites`` are pairs (input, output) of indices: the output may
    use that input's memory.
    """

    run: ObjectCode
    run_params: tuple[ParamSpec, ...]
    bind: ObjectCode | None = None
    bind_params: tuple[ParamSpec, ...] = ()
    dims: tuple[Dim, ...] = ()
    sizes: tuple[int, ...] = ()
    overwrites: tuple[tuple[int, int], ...] = ()

    def at(self, sizes: Sizes) -> Built:
        """The same code, to be run with these *sizes* of all its dimensions."""
        params = tuple(spec.at(sizes) for spec in self.run_params)
        return replace(self, run_params=params, sizes=tuple(fixed(sizes[d]) for d in self.dims))

    @property
    def digest(self) -> str:
        """Content digest: equal digests mean equal code, and that it is called alike.

        It covers all but the seconds that compilation took and the listings.
        """
        whole = hashlib.sha256()
        for code, params in ((self.run, self.run_params), (self.bind, self.bind_params)):
            if code is None:
                whole.update(b"-")
                continue
            called = code.symbol, code.shared_bytes, code.thread_bytes, code.digest, params
            whole.update(hashlib.sha256(code.code).digest())
            whole.update(repr(called).encode())
        if self.dims or self.sizes or self.overwrites:
            whole.update(repr((self.dims, self.sizes, self.overwrites)).encode())
        return whole.hexdigest()

    @property
    def build_s(self) -> float:
        """Seconds that compilation took."""
        return self.run.build_s + (0.0 if self.bind is None else self.bind.build_s)

    def parts(self) -> tuple[dict[str, object], tuple[bytes, ...]]:
        """A JSON-serializable header and the code bytes; :func:`built_from_parts` inverts this."""
        header = _Header(
            run=_unit(self.run, self.run_params),
            bind=None if self.bind is None else _unit(self.bind, self.bind_params),
            overwrites=self.overwrites,
            dims=tuple(map(dim_extent, self.dims)),
            sizes=self.sizes,
        )
        blobs = (self.run.code,) if self.bind is None else (self.run.code, self.bind.code)
        return header.model_dump(mode="json"), blobs


def _unit(code: ObjectCode, params: Sequence[ParamSpec]) -> _Unit:
    return _Unit(
        symbol=code.symbol,
        shared_bytes=code.shared_bytes,
        thread_bytes=code.thread_bytes,
        build_s=code.build_s,
        digest=code.digest,
        params=list(params),
    )


def built_from_parts(header: Mapping[str, object], blobs: Sequence[bytes]) -> Built:
    """Inverse of :meth:`Built.parts`; raises :class:`ForeignFile` for anything else."""
    try:
        read = _Header.model_validate(header)
    except ValidationError as error:
        raise ForeignFile(f"not a built kernel: {error.errors()[0]['msg']}") from None
    units = [unit for unit in (read.run, read.bind) if unit is not None]
    if len(units) != len(blobs):
        raise ForeignFile(f"a built kernel of {len(units)} functions with {len(blobs)} code blocks")
    codes = [
        ObjectCode(
            symbol=unit.symbol,
            code=blob,
            shared_bytes=unit.shared_bytes,
            thread_bytes=unit.thread_bytes,
            build_s=unit.build_s,
            digest=unit.digest,
        )
        for unit, blob in zip(units, blobs, strict=True)
    ]
    bind = codes[1] if len(codes) > 1 else None
    bind_params = tuple(units[1].params) if len(units) > 1 else ()
    return Built(
        codes[0], tuple(units[0].params), bind, bind_params, dims_of(read.dims), read.sizes,
        read.overwrites,
    )  # fmt: skip
