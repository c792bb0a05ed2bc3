"""The rates of this machine: measured once, kept, replaced when they cannot be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.errors import ForeignFile
from ansorpy.measure.probe import calibrate
from ansorpy.measure.probe.calibrate import calibrated, kept_rates, rates_file
from ansorpy.rates import Rates
from ansorpy.target import MIB, Target

RATES = Rates(4e9, 2.0, 2.5, 1.0, 60.0, 25.0, 1e11, 3e10, 5e10, 1e-6)


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Rates]:
    """The answers of the probe, one taken a call, in place of seconds of measuring."""
    monkeypatch.setenv("ANSORPY_CALIBRATE", "1")
    monkeypatch.setenv("ANSORPY_CACHE", str(tmp_path / "cache" / "deep"))
    answers: list[Rates] = []
    monkeypatch.setattr(calibrate, "measure_rates", lambda: answers.pop(0))
    return answers


def test_the_machine_is_measured_once(probes: list[Rates]) -> None:
    probes.append(RATES)
    assert kept_rates() is None
    for _ in range(3):
        assert calibrated(Target.host()).rates == RATES
    assert kept_rates() == RATES and Target.host().rates is None


def test_asking_again_measures_again(probes: list[Rates]) -> None:
    slower = Rates(**{**RATES.to_dict(), "clock_hz": 3e9})
    probes += [RATES, slower]
    calibrated(Target.host())
    assert calibrated(Target.host(), again=True).rates == slower == kept_rates()


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"machine": {}}', "\xff\xfe"])
def test_a_damaged_file_is_measured_again(probes: list[Rates], text: str) -> None:
    probes += [RATES, RATES]
    calibrated(Target.host())
    rates_file().write_bytes(text.encode("latin-1"))
    with pytest.raises(ForeignFile, match="does not contain rates of this machine"):
        kept_rates()
    assert calibrated(Target.host()).rates == RATES and kept_rates() == RATES


def test_wrong_numbers_are_measured_again(probes: list[Rates]) -> None:
    probes += [RATES, RATES]
    calibrated(Target.host())
    content = json.loads(rates_file().read_text())
    content["rates"]["clock_hz"] = -1
    rates_file().write_text(json.dumps(content))
    with pytest.raises(ForeignFile, match="no machine has these rates"):
        kept_rates()
    assert calibrated(Target.host()).rates == RATES
    rates_file().write_text(json.dumps({**content, "rates": None}))
    with pytest.raises(ForeignFile, match="not the measured rates"):
        kept_rates()


def test_a_folder_that_cannot_be_written_costs_a_probe_a_run(
    probes: list[Rates], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ANSORPY_CACHE", str(tmp_path / "file" / "below"))
    probes.append(RATES)
    assert calibrated(Target.host()).rates == RATES
    assert kept_rates() is None


def test_other_machines_are_never_measured(probes: list[Rates]) -> None:
    target = Target.parse("cortex-a76")
    assert calibrated(target) is target


def test_measuring_can_be_turned_off(probes: list[Rates], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSORPY_CALIBRATE", "0")
    assert calibrated(Target.host()).rates is None


def test_a_probe_gives_rates_that_survive_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calibrate, "PASSES", 1)
    monkeypatch.setattr(calibrate, "MOST_BYTES", 64 * MIB)
    rates = calibrate.measure_rates()
    assert Rates.from_dict(json.loads(json.dumps(rates.to_dict()))) == rates
    assert 1e8 < rates.clock_hz < 1e10 and 0.1 < rates.vector_ops_per_cycle < 16
    assert rates.l3_bytes_per_s >= rates.l3_bytes_per_cycle * rates.clock_hz * 0.99
    assert rates.dram_bytes_per_s >= rates.dram_core_bytes_per_s


@pytest.mark.parametrize("change", [{"clock_hz": "4"}, {"speed": 1.0}, {"fork_join_s": -1.0}])
def test_what_is_not_rates_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ForeignFile, match="not the measured rates"):
        Rates.from_dict({**RATES.to_dict(), **change})


def test_the_closed_form_model_reads_the_rates_of_its_target() -> None:
    host = Target.host()
    machine = MachineModel.of(replace(host, rates=RATES))
    assert machine == MachineModel.of(host).measured(RATES)
    assert machine.clock_hz == 4e9 and machine.dram_core_bytes_per_s == 3e10
    assert machine.fork_join_s == 1e-6 and machine.narrow_ops_per_cycle == 2.5


def test_a_target_of_narrower_vectors_has_the_rate_of_those(probes: list[Rates]) -> None:
    probes.append(RATES)
    host = Target.host()
    half = replace(host, vector_bits=host.vector_bits // 2)
    assert calibrated(half).rates == replace(RATES, vector_ops_per_cycle=2.5)
    assert calibrated(host).rates == RATES == kept_rates()
