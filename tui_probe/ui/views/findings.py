"""What was found on the machine: a line each; in full while the section has the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import Line, pad, wrap
from tui_probe.ui.views.text import TextView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ui.home import Finding
    from tui_probe.ui.views.view import Desk

GLYPHS = {"ok": ("✔", "good"), "optional": ("○", "dim"), "warn": ("!", "warn"), "missing": ("✘", "bad")}
ORDER = ("missing", "warn", "optional", "ok")
_FINE = ("ok", "optional")
BEFORE = 3
"""Cells of the glyph."""


class FindingsView(TextView):
    """Problems first."""

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, "looking at this machine")
        self.findings: Sequence[Finding] = ()

    def learn(self, findings: Sequence[Finding]) -> None:
        """Show these."""
        self.findings = sorted(findings, key=lambda finding: ORDER.index(finding.state))
        self.changed()

    @property
    def troubles(self) -> int:
        """How many are not as they should be."""
        return sum(finding.state not in _FINE for finding in self.findings)

    def draw(self, width: int, height: int) -> list[Line]:
        """Cut lines, or all that they say."""
        self.lines = self.in_full(width) if self.focused else self.in_short()
        return super().draw(width, height)

    def in_short(self) -> list[Line]:
        """A line each."""
        return [(*self._head(f), (f.found, "dim"), (f"  → {f.advice}" if f.advice else "", "")) for f in self.findings]

    def in_full(self, width: int) -> list[Line]:
        """As many lines as the words need."""
        indent = BEFORE + self._widest() + 2
        lines: list[Line] = []
        for finding in self.findings:
            found = wrap(finding.found, max(20, width - indent - 1)) or [""]
            lines.append((*self._head(finding), (found[0], "dim")))
            lines += [((" " * indent, ""), (more, "dim")) for more in found[1:]]
            advice = wrap(f"→ {finding.advice}", max(20, width - indent - 1)) if finding.advice else []
            lines += [((" " * indent, ""), (more, "")) for more in advice]
        return lines

    def _widest(self) -> int:
        return max((len(finding.name) for finding in self.findings), default=0)

    def _head(self, finding: Finding) -> Line:
        glyph, role = GLYPHS[finding.state]
        return ((f" {glyph} ", role), (f"{pad(finding.name, self._widest())}  ", ""))
