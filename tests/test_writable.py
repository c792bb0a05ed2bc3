"""Files that cannot be written are found before they are written, and nothing is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path

import pytest

from ansorpy.errors import UsageError
from ansorpy.writable import demand_folders, demand_writable, replacing, write_whole


def test_nothing_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    old = tmp_path / "old.json"
    old.write_text("kept")
    os.utime(old, (1.0, 1.0))
    demand_writable(old, tmp_path / "new.json", Path("new.json"), Path("/dev/null"))
    assert [p.name for p in tmp_path.iterdir()] == ["old.json"]
    assert (old.read_text(), old.stat().st_mtime) == ("kept", 1.0)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "Is a directory"), ("no/a", "No such file or directory"), ("file/a", "Not a directory"),
     ("n" * 300, "File name too long"), ("/proc/a", ".+")],
)  # fmt: skip
def test_places_where_nothing_can_be_written(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    with pytest.raises(UsageError, match=f"^cannot write {path}: {reason}"):
        demand_writable(tmp_path / "possible", path)


def test_a_file_that_is_read_is_not_replaced(tmp_path: Path) -> None:
    source, link = tmp_path / "a.npz", tmp_path / "b.npz"
    source.write_text("kept")
    link.symlink_to(source)
    demand_writable(tmp_path / "c.npz", reads=[source, tmp_path / "absent"])
    with pytest.raises(UsageError, match=f"^{link} would replace {source}"):
        demand_writable(link, reads=[tmp_path / "absent", source])


def test_folders_are_made(tmp_path: Path) -> None:
    made = (tmp_path / "a" / "b", tmp_path / "a", Path(tmp_path))
    demand_folders(*made)
    assert made[0].is_dir() and not list(made[0].iterdir())
    (tmp_path / "file").touch()
    for place, reason in (("file", "File exists"), ("file/a", "Not a directory"), ("/proc/a", ".")):
        path = tmp_path / place
        with pytest.raises(UsageError, match=f"^cannot write {path}: {reason}"):
            demand_folders(path)


def test_a_file_is_replaced_when_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "net.h"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as made:
        made.write_text("new, in")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    with replacing(path) as made:
        made.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_text_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(path: Path, text: str) -> int:
        path.write_bytes(text.encode()[: len(text) // 2])
        raise OSError(ENOSPC, "No space left on device")

    path = tmp_path / "model.txt"
    write_whole(path, "old")
    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(UsageError, match=f"cannot write {path}: No space left"):
        write_whole(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@contextmanager
def no_root() -> Iterator[None]:
    """Root may write everywhere, so it is another user meanwhile."""
    if os.geteuid():
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # whose parents another user may not enter
    tmp_path.chmod(0o755)
    Path("locked").touch(mode=0o400)
    os.mkfifo("pipe", mode=0o400)
    Path("open").touch()
    Path("open").chmod(0o666)
    with no_root():
        demand_writable(Path("open"))
        for name in ("locked", "pipe"):
            with pytest.raises(UsageError, match=f"cannot write {name}: Permission denied"):
                demand_writable(Path(name))
