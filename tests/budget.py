"""How many examples a property test draws: a third in ``make test``, all when exploring."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]


def examples(most: int) -> settings:
    """Draws *most* examples under ``--hypothesis-profile=explore``, else a third of them, fixed."""
    return settings(max_examples=-(-most // 3) if settings.default.derandomize else most)
