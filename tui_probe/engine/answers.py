"""What becomes of a kernel, as the engine answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tui_probe.reasons import Reason

_SHORT: Final = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of a kernel: ``ok`` with the file to load, ``skipped`` or ``failed`` with a reason.

    ``text`` is on one line: the file, or the words of the reason. ``code`` is that of the reason, None for ``ok``.
    """

    outcome: Literal["ok", "skipped", "failed"]
    text: str
    code: str | None = None

    @classmethod
    def refusal(cls, outcome: Literal["skipped", "failed"], reason: Reason) -> Answer:
        """A kernel that is not probed, for a reason that is cut short if it is very long."""
        return cls(outcome, *reason.shortened(_SHORT))

    @property
    def reason(self) -> Reason | None:
        """Why it is not probed."""
        return None if self.code is None else Reason(self.text, self.code)

    @property
    def written(self) -> str:
        """As the hook is told it."""
        return self.text if self.reason is None else self.reason.written
