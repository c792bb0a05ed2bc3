"""What the examination of a machine tells beside what is missing."""

from __future__ import annotations

import json

from ansorpy.config import available_cores
from ansorpy.measure.fleet.base import kind_of
from ansorpy.report.doctor import examine
from ansorpy.target import Target


def test_it_says_what_a_ray_node_here_may_offer() -> None:
    [finding] = [f for f in examine().findings if f.name == "as a node"]
    _, _, resources = finding.detail.partition("--resources=")
    assert json.loads(resources.strip("'")) == {kind_of(Target.host()): available_cores()}
    assert not finding.needed
