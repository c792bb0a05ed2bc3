"""The page in a browser: charts are drawn without errors, filters and selections take effect."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.page.test_write import page as page  # the fixture

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
PROBE = Path(__file__).with_name("probe.js").read_text()
ERRORS = """<script>
window.probeErrors = [];
addEventListener("error", (event) => probeErrors.push(event.message));
addEventListener("unhandledrejection", (event) => probeErrors.push(String(event.reason)));
for (const kind of ["error", "warn"]) console[kind] = (...said) => probeErrors.push(said.join(" "));
</script>"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no chromium")


@pytest.fixture(scope="module", params=[1400, 500], ids=["wide", "phone"])
def found(request: pytest.FixtureRequest, page: Path, tmp_path_factory: Any) -> dict[str, Any]:
    """What the probe found, in a window of this width."""
    folder = tmp_path_factory.mktemp("browser")
    probed = folder / "probed.html"
    head, style, rest = page.read_text().partition("<style>")
    body, end, tail = rest.rpartition("</body>")
    probed.write_text(f"{head}{ERRORS}{style}{body}<script>{PROBE}</script>{end}{tail}")
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}",
        f"--window-size={request.param},1200", "--virtual-time-budget=20000", "--dump-dom",
        probed.as_uri(),
    ]  # fmt: skip
    dump = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    probe = re.search(r'data-probe="([^"]*)"', dump)
    assert probe is not None, dump[-2000:]
    result: dict[str, Any] = json.loads(html.unescape(probe[1]))
    return result


def test_all_charts_are_drawn_without_errors(found: dict[str, Any]) -> None:
    assert found["errors"] == []
    for charts in (found["charts"], found["again"]):
        assert {name for name, marks in charts if marks} == {
            f"chart-{name}"
            for name in (
                "network", "curves", "times", "budget", "roofline", "failures", "predicted",
                "correlations",
            )
        }  # fmt: skip
    assert found["overflow"] <= 0


def test_what_the_reader_sees_is_drawn_first_and_paper_shows_all(found: dict[str, Any]) -> None:
    assert found["blank"] == [] and found["unprinted"] == []


def test_many_points_are_thinned_evenly_and_selected_ones_are_on_top(found: dict[str, Any]) -> None:
    assert found["thinned"] == [2000, 1800, "2,000 of 6,000 programs, evenly chosen", 5972]


def test_an_axis_has_room_around_equal_values(found: dict[str, Any]) -> None:
    assert found["flat"] == [[2.5, 6.4], [0.5, 8]]


def test_the_filter_and_the_selection(found: dict[str, Any]) -> None:
    assert found["tasks"] == 3 and found["filtered"] == ["scale_64"]
    assert found["none"] == [0, 0] and found["one"] == [1, 1]
    assert found["byName"] == ["dense_16_32_64", "matmul_8_8_8", "scale_64"]


def test_dark_and_light(found: dict[str, Any]) -> None:
    assert found["theme"] == [True, True]
