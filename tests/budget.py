"""How many examples a property test draws: a third in ``make test``, all when exploring."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]


def examples(most: int) -> settings:
    """Draws *most* examples under ``--hypothesis-profile=explore``, else a third of them, fixed."""
    explores = settings.default is not None and not settings.default.derandomize
    return settings(max_examples=most if explores else -(-most // 3))
