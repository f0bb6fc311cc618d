"""``run -k`` with a name that none of the kernels has: seen while the program runs, and told once."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import safe
from tui_probe.pages.not_probed import named_none, none_named_words

if TYPE_CHECKING:
    from tui_probe.ui.feed import Snapshot

PATIENCE = 5.0
"""Seconds in which kernels are launched and none is meant, after which that is told of a program that runs."""

_ASKED: Final = 30
"""Cells of what was asked for."""


class NoneNamed:
    """``state`` stands in the line of state as long as it is so; "" else."""

    def __init__(self) -> None:
        self.state = ""
        self._since: float | None = None

    def look(self, snapshot: Snapshot, now: float) -> str:
        """What is to be said now, once, with the names that may have been meant; "" for nothing."""
        asked = self._asked(snapshot)
        if asked is None:
            self.state, self._since = "", None
            return ""
        self._since = now if self._since is None else self._since
        if self.state or (snapshot.running and now < self._since + PATIENCE):
            return ""
        self.state = f"-k {shorten(safe(asked), _ASKED)} names none of these"
        return self._words(asked, snapshot)

    @classmethod
    def why_unmeasured(cls, snapshot: Snapshot) -> str:
        """Why nothing was measured where no kernel is probed: the same words, or only that."""
        asked = cls._asked(snapshot)
        if asked is not None:
            return cls._words(asked, snapshot)
        return "no kernel is probed yet" if snapshot.running else "no kernel was probed"

    @staticmethod
    def _words(asked: str, snapshot: Snapshot) -> str:
        words = none_named_words(asked, chain.from_iterable(each.kernels for each in snapshot.processes))
        return words.replace("the kernels", "the kernels so far", 1) if snapshot.running else words

    @staticmethod
    def _asked(snapshot: Snapshot) -> str | None:
        """What was asked for, where no process has launched a kernel that is meant."""
        launched = [each for each in snapshot.processes if each.kernels]
        asked = {named_none(each.trace, each.kernels) for each in launched if each.trace is not None}
        return asked.pop() if len(asked) == 1 else None
