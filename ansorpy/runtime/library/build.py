"""Build the files of a CPU's program: a library, shared or static, an object, or a listing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.elf import MAGIC
from ansorpy.codegen.llvm.objects.listing import assembly_of, ir_of
from ansorpy.codegen.llvm.threads.team import ending_with_library, needs_team, team_object
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import UsageError
from ansorpy.ir.strides import ALIGNMENT_BYTES
from ansorpy.runtime.describe import metadata_of
from ansorpy.runtime.entry.dispatch import emit_dispatch
from ansorpy.runtime.entry.module import baseline, build_entry, emit_entry
from ansorpy.runtime.entry.source import EntrySource
from ansorpy.runtime.execution_plan import ExecutionPlan, PlanStep
from ansorpy.runtime.library.archive import write_archive
from ansorpy.runtime.library.data_object import has_large_sections, write_data_object
from ansorpy.runtime.library.elf import CONSTANTS
from ansorpy.runtime.library.forms import Form, Pack, constants_file, form_of
from ansorpy.runtime.library.linker import (
    FUNCTIONS,
    find_linker,
    library_name,
    linking,
    refuse_size,
)
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.library.storage import Contents, stored
from ansorpy.runtime.library.symbols import defined, renamed_symbols
from ansorpy.target import Target
from ansorpy.writable import replacing

__all__ = ["build_program"]


def build_program(plans: Sequence[ExecutionPlan], path: Path, pack: Pack | None) -> Metadata:
    """Write a program to *path* in the form that its suffix names; returns its metadata.

    Args:
        plans: Versions of it for CPUs of one architecture; the last one needs the fewest features.

    Raises:
        UsageError: The constants exceed what one library can hold, or a listing was asked of
            machine code.
        MissingDependency, CodegenError: There is no linker, or it failed.
    """
    form, name = form_of(path), library_name(path)
    contents = Contents(f"{name}_constants")
    sources = []
    for number, plan in enumerate(plans):
        prefix = name if len(plans) == 1 else f"{name}_v{number}"
        whole = stored(plan, pack or Pack.AT_INIT, name, len(plans))
        if form in (Form.LL, Form.ASM):
            whole = _listed(whole, path)
        if len(plans) > 1:
            whole = _prefixed(whole, f"v{number}_")
        sources.append(EntrySource(whole, prefix, contents.add(whole)))
    size = contents.size + sum(source.made_bytes for source in sources)
    refuse_size(size, plans[0].target)
    metadata = _metadata(name, sources, contents)
    text = metadata.model_dump_json()
    dispatch = ""
    if len(plans) == 1:
        sources = [replace(source, metadata=text) for source in sources]
    else:
        names = [source.name for source in sources]
        dispatch = emit_dispatch(name, names, plans[0].target.triple, text)
    program = _Program(name, tuple(sources), dispatch, contents)
    match form:
        case Form.A | Form.O:
            program.write_static(path, form)
        case Form.LL | Form.ASM:
            program.write_listing(path, form)
        case _:
            program.write_shared(path)
    return metadata


def _metadata(name: str, sources: Sequence[EntrySource], contents: Contents) -> Metadata:
    """That of the last version, which all CPUs can run that run any, with the programs of all."""
    plan = sources[-1].plan
    programs = tuple(p for source in sources for p in source.plan.programs)
    target = replace(plan.target, name=",".join(s.plan.target.name for s in sources))
    code = "".join(map(emit_entry, sources))
    digest = hashlib.sha256(contents.digest)
    for source in sources[:-1]:
        digest.update("".join(code.digest for code in source.plan.objects).encode())
    whole = replace(plan, programs=programs, target=target)
    return metadata_of(whole, name, code, digest.digest(), plan.target.triple)


def _prefixed(plan: ExecutionPlan, prefix: str) -> ExecutionPlan:
    """*plan* whose functions have other names than those of other versions."""

    def other(step: PlanStep) -> PlanStep:
        symbol = step.code.symbol
        if step.code.code.startswith(MAGIC):
            image = renamed_symbols(step.code.code, {symbol: f"{prefix}{symbol}"})
        else:
            image = step.code.code.replace(f"@{symbol}".encode(), f"@{prefix}{symbol}".encode())
        return replace(step, code=replace(step.code, symbol=f"{prefix}{symbol}", code=image))

    return replace(plan, steps=tuple(map(other, plan.steps)), packs=tuple(map(other, plan.packs)))


def _listed(plan: ExecutionPlan, path: Path) -> ExecutionPlan:
    """*plan* with LLVM IR for machine code; what can be packed here has been."""

    def text(code: ObjectCode) -> ObjectCode:
        if code.listing is None:
            raise UsageError(
                f"{code.symbol} is machine code, which cannot be written as {path.name}",
                hint="name a library: .so or .a",
            )
        return replace(code, code=code.listing().encode())

    texts = {code.symbol: text(code) for code in plan.objects}

    def listed(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
        return tuple(replace(step, code=texts[step.code.symbol]) for step in steps)

    return replace(plan, steps=listed(plan.steps), packs=listed(plan.packs))


@dataclass(frozen=True)
class _Program:
    """Versions of a program, and the module that chooses one of several."""

    name: str
    sources: tuple[EntrySource, ...]
    dispatch: str
    contents: Contents

    @property
    def target(self) -> Target:
        """The architecture's baseline: code for it can run wherever any version can."""
        return baseline(self.sources[0].plan.target)

    @property
    def codes(self) -> list[tuple[ObjectCode, Target]]:
        return [(code, s.plan.target) for s in self.sources for code in s.plan.objects]

    @property
    def has_threads(self) -> bool:
        return any(needs_team(code.code) for code, _ in self.codes)

    def objects(self, folder: Path) -> Iterator[Path]:
        """Write the objects of the program to *folder*; the constants are last."""
        images = {f"task{k}.o": code.code for k, (code, _) in enumerate(self.codes)}
        images |= {f"entry{k}.o": build_entry(source) for k, source in enumerate(self.sources)}
        if self.dispatch:
            images["dispatch.o"] = compile_ir(self.dispatch, self.target)
        if self.has_threads:
            images["team.o"] = team_object(self.target, ends_with_library=True)
        for file, image in images.items():
            path = folder / file
            path.write_bytes(image)
            yield path
        path = folder / "constants.o"
        write_data_object(path, images["entry0.o"], self.contents.symbol, self.contents.pieces)
        yield path

    def write_shared(self, path: Path) -> None:
        needs = ("-pthread",) if self.has_threads else ()
        with linking(self.name, path, find_linker(self.target)) as link:
            link.link([*self.objects(link.folder)], needs=needs)

    def write_static(self, path: Path, form: Form) -> None:
        """Write an archive or an object, in which only the functions of the interface have names
        that other programs may have."""
        with replacing(path) as made:
            folder = made.parent / "members"  # one of them may be called as the object is
            folder.mkdir()
            members = [*self.objects(folder)]
            images = {member: member.read_bytes() for member in members[:-1]}
            interface = {f"{self.name}_{function}" for function in FUNCTIONS}
            own = {s for image in images.values() for s in defined(image)} - interface
            names = {symbol: f"{self.name}_{symbol}" for symbol in own}
            for member, image in images.items():
                images[member] = renamed_symbols(image, names)
                member.write_bytes(images[member])
            if form is Form.A:
                symbols = {member: defined(image) for member, image in images.items()}
                write_archive(made, {**symbols, members[-1]: [self.contents.symbol]})
            else:
                find_linker(self.target).merge(made, members)

    def write_listing(self, path: Path, form: Form) -> None:
        """Write all code as one listing, which takes the constants in from the file beside it."""
        machine, symbol = self.target, self.contents.symbol
        modules = [(emit_entry(source), machine) for source in self.sources]
        modules += [(self.dispatch, machine)] if self.dispatch else []
        modules += [(code.code.decode(), target) for code, target in self.codes]
        if self.has_threads:
            modules.append((ending_with_library(machine), machine))
        text, flags = ir_of(modules), "al" if has_large_sections(machine) else "a"
        taken_in = (
            f'.pushsection {CONSTANTS},"{flags}"', f".balign {ALIGNMENT_BYTES}",
            f".globl {symbol}", f".hidden {symbol}", f"{symbol}:",
            f'.incbin "{constants_file(path).name}"', ".popsection",
        )  # fmt: skip
        if form is Form.ASM:
            text = assembly_of(text, machine) + "".join(f"\t{line}\n" for line in taken_in)
        else:
            lines = (line.replace('"', "\\22") for line in taken_in)
            text += "".join(f'\nmodule asm "{line}"' for line in lines) + "\n"
        with replacing(constants_file(path)) as made, made.open("wb") as file:
            file.writelines(self.contents.pieces)
        with replacing(path) as made:
            made.write_text(text, encoding="utf-8")
