"""A sketch rule's verdict on a stage, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Answer", "Verdict"]


class Answer(Enum):
    """TVM's ``ConditionKind``."""

    SKIP = "skip"
    APPLY = "apply"
    APPLY_AND_SKIP_REST = "apply and skip rest"


@dataclass(frozen=True)
class Verdict:
    """An answer with its reason; ``explain`` prints both for every rule and stage."""

    answer: Answer
    reason: str

    @staticmethod
    def skip(reason: str) -> Verdict:
        """The rule does not apply."""
        return Verdict(Answer.SKIP, reason)

    @staticmethod
    def apply(reason: str) -> Verdict:
        """The rule applies; later rules are tried on the same state too."""
        return Verdict(Answer.APPLY, reason)

    @staticmethod
    def apply_and_skip_rest(reason: str) -> Verdict:
        """The rule applies and is the last one tried on this state."""
        return Verdict(Answer.APPLY_AND_SKIP_REST, reason)

    @property
    def applies(self) -> bool:
        """Whether the rule applies, with or without later rules."""
        return self.answer is not Answer.SKIP

    def __str__(self) -> str:
        return f"{self.answer.value}: {self.reason}"
