"""The knobs are read from the environment when asked; thread counts follow what may be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansorpy import config
from ansorpy.errors import UsageError


def test_a_knob_reads_its_variable_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSORPY_NUM_THREADS", raising=False)
    assert config.NUM_THREADS.get() is None
    monkeypatch.setenv("ANSORPY_NUM_THREADS", "3")
    assert config.NUM_THREADS.get() == 3
    monkeypatch.setenv("ANSORPY_NUM_THREADS", " ")
    assert config.NUM_THREADS.get() is None


@pytest.mark.parametrize(
    ("name", "text"),
    [("NUM_THREADS", "0"), ("NUM_THREADS", "two"), ("DEBUG", "6"), ("VERIFY", "x"), ("SEED", "-1")],
)
def test_a_bad_value_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    knob = getattr(config, name)
    monkeypatch.setenv(knob.name, text)
    with pytest.raises(UsageError, match=f"{knob.name}='{text}' is not"):
        knob.get()


def test_a_folder_may_be_named_from_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANSORPY_CACHE", "~/kept")
    monkeypatch.setenv("ANSORPY_DB", "~/tune.db")
    assert config.cache_folder() == tmp_path / "kept"
    assert config.database_or_default(None) == tmp_path / "tune.db"


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    for variable in ("ANSORPY_CACHE", "ANSORPY_DB", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UsageError, match="no home folder") as error:
        config.database_or_default(None)
    assert "set ANSORPY_CACHE and ANSORPY_STATE" in str(error.value.hint)
    monkeypatch.setenv("ANSORPY_CACHE", "~no-such-user/kept")
    with pytest.raises(UsageError, match="ANSORPY_CACHE='~no-such-user/kept' is not a path"):
        config.cache_folder()


def test_asked_threads_win_over_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSORPY_NUM_THREADS", "7")
    assert config.default_threads() == 7
    monkeypatch.delenv("ANSORPY_NUM_THREADS")
    assert config.default_threads() == config.available_cores()
    assert 1 <= config.available_cores() <= len(os.sched_getaffinity(0))


def _group(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_max", ".max").replace("cpu_cfs", "cpu.cfs")).write_text(text)
    return folder


def test_quota_of_cgroup_version_2_is_the_least_on_the_path(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    _group(root / "a" / "b", cpu_max="max 100000\n")
    (root / "a" / "cpu.max").write_text("150000 100000\n")
    proc = tmp_path / "self"
    proc.write_text("0::/a/b\n")
    assert config.cgroup_quota(root, proc) == 1.5


def test_quota_of_cgroup_version_1(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    _group(root / "cpu" / "x", cpu_cfs_quota_us="300000\n", cpu_cfs_period_us="100000\n")
    proc = tmp_path / "self"
    proc.write_text("3:memory:/m\n2:cpu,cpuacct:/x\n")
    assert config.cgroup_quota(root, proc) == 3.0


def test_no_limit_and_no_cgroup_give_no_quota(tmp_path: Path) -> None:
    assert config.cgroup_quota(tmp_path, tmp_path / "absent") is None
    _group(tmp_path / "g", cpu_max="max 100000")
    (tmp_path / "self").write_text("0::/g\n")
    assert config.cgroup_quota(tmp_path, tmp_path / "self") is None


def test_every_knob_is_in_the_table_once() -> None:
    names = [knob.name for knob in config.KNOBS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("ANSORPY_") for name in names)
    found = {v.name for v in vars(config).values() if isinstance(v, config.Knob)}
    assert found == set(names)
