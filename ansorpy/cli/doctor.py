"""``ansorpy doctor``: what works on this machine."""

from __future__ import annotations

import json

from ansorpy.cli.options import AsJson

__all__ = ["doctor"]


def doctor(as_json: AsJson = False) -> None:
    """Say what works on this machine, and what to install for what does not."""
    from ansorpy.report.doctor import examine
    from ansorpy.report.tables import show

    examination = examine()
    if as_json:
        print(json.dumps(examination.to_dict(), indent=2))
    else:
        show(examination.table())
    examination.demand()
