"""Objects of bytes: LLVM reads them back, for every machine that libraries are made for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding as llvm

from ansorpy.runtime.library.data_object import write_data_object

TRIPLES = {
    "x86_64-unknown-linux-gnu": 62, "aarch64-unknown-linux-gnu": 183,
    "riscv64-unknown-linux-gnu": 243, "powerpc64le-unknown-linux-gnu": 21,
}  # fmt: skip


def compiled(triple: str) -> bytes:
    """An object of that machine, from LLVM itself."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine()
    module = llvm.parse_assembly(f'target triple = "{triple}"\n@x = global i32 7\n')
    code: bytes = machine.emit_object(module)
    return code


@pytest.mark.parametrize("triple", TRIPLES)
def test_llvm_reads_what_was_written(triple: str, tmp_path: Path) -> None:
    like = compiled(triple)
    parts = [np.random.default_rng(n).bytes(n) for n in (1, 64, 1021)]
    write_data_object(tmp_path / "c.o", like, "net_data", iter(parts))
    made = (tmp_path / "c.o").read_bytes()
    assert int.from_bytes(made[18:20], "little") == TRIPLES[triple]
    image = llvm.ObjectFileRef.from_data(made)  # has to outlive its sections
    sections = {s.name(): bytes(s.data()) for s in image.sections() if s.size()}
    assert sections[b".lrodata"] == b"".join(parts)
    assert b".note.GNU-stack" in sections[b".shstrtab"]
    assert made.count(b"\0net_data\0") == 1
