"""Build the files of a CPU's program: a library, shared or static, an object, or a listing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ansorpy.codegen.llvm.objects.listing import assembly_of, ir_of
from ansorpy.codegen.llvm.threads.team import ending_with_library, needs_team, team_object
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import UsageError
from ansorpy.runtime.cpu_features import required_features
from ansorpy.runtime.describe import metadata_of
from ansorpy.runtime.entry.module import EntrySource, baseline, build_entry, emit_entry
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.library.archive import write_archive
from ansorpy.runtime.library.data_object import SECTION, write_data_object
from ansorpy.runtime.library.forms import Form, Pack, form_of
from ansorpy.runtime.library.linker import (
    FUNCTIONS,
    find_linker,
    library_name,
    linking,
    refuse_size,
)
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.library.storage import Contents, Places, stored
from ansorpy.runtime.library.symbols import defined, renamed
from ansorpy.target import Target

__all__ = ["binary_of", "build_program"]

_ELF = b"\x7fELF"


def binary_of(listing: Path) -> Path:
    """The file with the constants of the file *listing*: ``net.ll.bin``, beside it."""
    return listing.with_name(f"{listing.name}.bin")


def build_program(plan: ExecutionPlan, path: Path, pack: Pack | None) -> Metadata:
    """Write *plan* to *path* in the form that its suffix names; returns its metadata.

    Raises:
        UsageError: The constants exceed what one library can hold, or a listing was asked of
            machine code.
        MissingDependency, CodegenError: There is no linker, or it failed.
    """
    form, name = form_of(path), library_name(path)
    _demand_code(plan, form, path)
    plan, contents = stored(plan, pack or Pack.AT_INIT, name), Contents()
    places = contents.add(plan, f"{name}_constants")
    refuse_size(contents.size + places.made_bytes)
    source = EntrySource(plan, name, places, features=required_features(plan.target))
    metadata = metadata_of(plan, name, emit_entry(source), contents.digest, plan.target.triple)
    program = _Program(replace(source, metadata=metadata.model_dump_json()), places, contents)
    match form:
        case Form.A | Form.O:
            program.write_static(path, form)
        case Form.LL | Form.ASM:
            program.write_listing(path, form)
        case _:
            program.write_shared(path)
    return metadata


def _demand_code(plan: ExecutionPlan, form: Form, path: Path) -> None:
    is_machine_code = any(code.code.startswith(_ELF) for code in plan.objects)
    if form in (Form.LL, Form.ASM) and is_machine_code:
        raise UsageError(
            f"what is compiled already cannot be written as {path.name}",
            hint=f"use the command line: ansorpy export --emit {form}",
        )


@dataclass(frozen=True)
class _Program:
    source: EntrySource
    places: Places
    contents: Contents

    @property
    def target(self) -> Target:
        return self.source.plan.target

    @property
    def codes(self) -> list[ObjectCode]:
        return self.source.plan.objects

    @property
    def has_threads(self) -> bool:
        return any(needs_team(code.code) for code in self.codes)

    def objects(self, folder: Path) -> Iterator[Path]:
        """Write the objects of the program to *folder*; the constants are last."""
        images = {f"task{k}.o": code.code for k, code in enumerate(self.codes)}
        images["entry.o"] = build_entry(self.source)
        if self.has_threads:
            team = team_object(baseline(self.target), ends_with_library=True)
            images["team.o"] = team
        for file, image in images.items():
            path = folder / file
            path.write_bytes(image)
            yield path
        path = folder / "constants.o"
        write_data_object(path, images["entry.o"], self.places.symbol, self.contents.pieces)
        yield path

    def write_shared(self, path: Path) -> None:
        needs = ("-pthread",) if self.has_threads else ()
        with linking(self.source.name, path, find_linker(self.target)) as link:
            link.link([*self.objects(link.folder)], needs=needs)

    def write_static(self, path: Path, form: Form) -> None:
        """Write an archive or an object, in which only the functions of the interface have names
        that other programs may have."""
        with TemporaryDirectory(prefix="ansorpy-", dir=path.parent) as folder:
            made, members = Path(folder, path.name), [*self.objects(Path(folder))]
            images = {member: member.read_bytes() for member in members[:-1]}
            interface = {f"{self.source.name}_{function}" for function in FUNCTIONS}
            own = {s for image in images.values() for s in defined(image)} - interface
            names = {symbol: f"{self.source.name}_{symbol}" for symbol in own}
            for member, image in images.items():
                images[member] = renamed(image, names)
                member.write_bytes(images[member])
            if form is Form.A:
                symbols = {member: defined(image) for member, image in images.items()}
                write_archive(made, {**symbols, members[-1]: [self.places.symbol]})
            else:
                find_linker(self.target).merge(made, members)
            os.replace(made, path)

    def write_listing(self, path: Path, form: Form) -> None:
        """Write all code as one listing, which takes the constants in from the file beside it."""
        machine = baseline(self.target)
        modules = [(emit_entry(self.source), machine)]
        modules += [(code.code.decode(), self.target) for code in self.codes]
        if self.has_threads:
            modules.append((ending_with_library(machine), machine))
        text = ir_of(modules)
        taken_in = (
            f'.pushsection {SECTION},"a"', ".balign 64", f".globl {self.places.symbol}",
            f".hidden {self.places.symbol}", f"{self.places.symbol}:",
            f'.incbin "{binary_of(path).name}"', ".popsection",
        )  # fmt: skip
        if form is Form.ASM:
            text = assembly_of(text, machine) + "".join(f"\t{line}\n" for line in taken_in)
        else:
            lines = (line.replace('"', "\\22") for line in taken_in)
            text += "".join(f'\nmodule asm "{line}"' for line in lines) + "\n"
        with binary_of(path).open("wb") as file:
            file.writelines(self.contents.pieces)
        path.write_text(text)
