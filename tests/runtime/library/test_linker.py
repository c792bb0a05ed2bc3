from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from ansorpy.errors import CodegenError, MissingDependency
from ansorpy.runtime.library.linker import find_linker
from ansorpy.target import Target

HOST = Target.host()


def machine(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str, zig: bool = False) -> None:
    """A machine whose only programs are *names*."""
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        os.chmod(folder / name, 0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if zig else None)


def test_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, zig=True)
    assert find_linker(HOST).command[1:4] == ("-m", "ziglang", "cc")
    machine(tmp_path, monkeypatch, "clang", zig=True)
    assert find_linker(HOST).command == ("clang",)
    machine(tmp_path, monkeypatch, "gcc")
    assert find_linker(HOST).command == ("gcc",)
    machine(tmp_path, monkeypatch, "cc")
    assert find_linker(HOST).command == ("cc",)
    monkeypatch.setenv("CC", "gcc -m64")
    assert find_linker(HOST).command == ("gcc", "-m64")


def test_another_architecture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Target.parse("cortex-a76" if "x86" in HOST.triple else "x86-64-v3")
    arch = other.triple.split("-")[0]
    machine(tmp_path, monkeypatch, "cc", "gcc")
    with pytest.raises(MissingDependency) as error:
        find_linker(other)
    assert f"install {arch}-linux-gnu-gcc, or" in str(error.value)
    machine(tmp_path, monkeypatch, "cc", "gcc", zig=True)
    assert find_linker(other).command[-2:] == ("-target", f"{arch}-linux-gnu")
    machine(tmp_path, monkeypatch, f"{arch}-linux-gnu-gcc")
    assert find_linker(other).command == (f"{arch}-linux-gnu-gcc",)


def test_no_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch)
    with pytest.raises(MissingDependency, match="(?s)none of cc, gcc, clang.*install gcc") as error:
        find_linker(HOST)
    assert error.value.exit_code == 5
    monkeypatch.setenv("CC", "absent-cc")
    with pytest.raises(MissingDependency, match="CC=absent-cc, which does not exist"):
        find_linker(HOST)


def test_the_linkers_own_words_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, "cc")
    (tmp_path / "cc").write_text("#!/bin/sh\necho no such relocation >&2\nexit 1\n")
    with pytest.raises(CodegenError, match="cannot link x.so: no such relocation"):
        find_linker(HOST).shared_library(tmp_path / "x.so", [], tmp_path / "x.map")
