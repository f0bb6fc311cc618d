"""Sections of the home screen: the form for a program to start, and findings about the machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tui_probe.draw.spans import Line, clip, pad, width, wrap
from tui_probe.ui.prompt import Completion, Prompt, completion
from tui_probe.ui.views.view import PaneView, TextView, ViewHost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ui.session import MachineFinding, ProbeSummary, StartForm


class TextField(NamedTuple):
    """Field to type in; ``hint`` is shown in it while it is empty."""

    label: str
    hint: str


TEXTS = {
    "command": TextField("Command", "the program and its arguments, as in a shell: python train.py --steps 10"),
    "kernels": TextField("Only kernels", "parts of names, e.g. matmul:softmax; empty: all"),
    "excluded": TextField("Exclude", "parts of kernel names to exclude"),
    "launches": TextField("Launches", "per kernel, e.g. 0-9,20; empty: auto"),
}
"""Fields to type in, by name: each is a field of ``StartForm``."""
_CHOICES = {"probe": "Probe", "simulated": "Run on", "benchmark": "Benchmark"}
"""Labels of fields that offer choices."""
FIELDS = ("command", "probe", "kernels", "excluded", "launches", "simulated", "benchmark", "start")
"""Names of the fields, from the top."""
_LABEL_CELLS = 14
_VALUE_COLUMN = _LABEL_CELLS + 3
"""Column of values: before them are the sign of the cursor, the label, and the two cells of the sign of choices."""
_PROBE_PLACE = FIELDS.index("probe")
"""Place of the field with a second line: rows of later fields are one larger than their places."""
ROWS = len(FIELDS) + 1
"""Lines of the form: one per field, and one more about the probe, below that field."""
_ACCEPT_KEYS = ("right", "end", "ctrl+e")
"""Keys that accept the completion of the command line."""
_LEAVING_KEYS = ("escape", "enter", "up", "down", "tab", "shift+tab")
"""Keys that are not for a field to type in."""
_STATE_GLYPHS = {"ok": ("✔", "good"), "optional": ("○", "dim"), "warn": ("!", "warn"), "missing": ("✘", "bad")}
"""Glyph of each state of a finding, and its role."""
_WORST_FIRST = ("missing", "warn", "optional", "ok")
"""States from the worst on."""
_FINE_STATES = ("ok", "optional")
"""States that need no attention."""
_NAME_COLUMN = 3
"""Cells of the glyph, before the name of a finding."""
_MIN_ADVICE = 12
"""Cells from which on advice is shown in the line of its finding."""


class FormView(PaneView):
    """One field per line. What can be typed goes into the current field, if it is one to type in."""

    def __init__(self, view_host: ViewHost, name: str, form: StartForm) -> None:
        super().__init__(view_host, name)
        self.form = form
        self.place = 0
        self.probes: Sequence[ProbeSummary] = ()
        self.has_gpu: bool | None = None
        self._top = 0
        """Row of the form that was drawn first."""
        self._editor = self._new_editor()
        self._completion = Completion()
        """Known completions of the command line."""

    @property
    def field(self) -> str:
        """The name of the current field."""
        return FIELDS[self.place]

    @property
    def probe(self) -> ProbeSummary | None:
        """The chosen probe, if it is known."""
        return next((probe for probe in self.probes if probe.name == self.form.probe), None)

    def learn(self, *, has_gpu: bool) -> None:
        """Take whether there is a GPU: it decides the default machine of a run."""
        self.has_gpu = has_gpu
        if self.form.simulated is None:
            self.form.simulated = not has_gpu
        self.request_redraw()

    def _new_editor(self) -> Prompt | None:
        """Return an editor of the current field; None if that is not one to type in."""
        if self.field not in TEXTS:
            return None
        return Prompt(self.field, lambda _: None, getattr(self.form, self.field))

    # -- drawing

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the fields, or as many as fit with the current one, scrolled the least: a click moves no line."""
        lines: list[Line] = []
        for place, name in enumerate(FIELDS):
            lines.append(self._line(place, name, width))
            if name == "probe":
                summary = f"{self.probe.title}. Cost: {self.probe.cost}" if self.probe else "press Enter for a list"
                lines.append(((" " * _VALUE_COLUMN, ""), (clip(summary, width - _VALUE_COLUMN - 1), "dim")))
        row = self.place if self.place <= _PROBE_PLACE else self.place + 1
        self._top = max(0, min(max(min(self._top, row), row - height + 1), len(lines) - height))
        return lines[self._top : self._top + height]

    def _line(self, place: int, name: str, width: int) -> Line:
        at_cursor = self.focused and place == self.place
        head: Line = (("▌" if at_cursor else " ", "accent" if at_cursor else ""),)
        if name == "start":
            return (
                *head,
                (" Start ", "tab" if at_cursor else "tab_idle"),
                (" ", ""),
                (self._preview(width - 10), "dim"),
            )
        label = TEXTS[name].label if name in TEXTS else _CHOICES[name]
        choice = at_cursor and name not in TEXTS
        gap: Line = (("‹ " if choice else "  ", "key"),)
        return (
            *head,
            (pad(label, _LABEL_CELLS), "key" if at_cursor else ""),
            *gap,
            *self._value(name, at_cursor=at_cursor),
        )

    def _preview(self, cells: int) -> str:
        return clip(self.form.command_line(), max(0, cells))

    def _value(self, name: str, *, at_cursor: bool) -> Line:
        if name in TEXTS:
            text = getattr(self.form, name)
            if at_cursor and self._editor is not None:
                return self._edited_line(text, self._editor.cursor, TEXTS[name].hint)
            return ((text, "") if text else (TEXTS[name].hint, "dim"),)
        value = {
            "probe": self.form.probe,
            "simulated": self._machine(),
            "benchmark": "yes: launch each kernel again without probes" if self.form.benchmark else "no",
        }[name]
        return ((value, ""), (" ›" if at_cursor else "", "key"))

    def _edited_line(self, text: str, cursor: int, hint: str) -> Line:
        """The part of a text in which the cursor is."""
        start = max(0, cursor - max(1, self.width - _VALUE_COLUMN - 2))  # the cursor's cell, and one at the end
        suggestion = self._suffix
        head: Line = ((text[start:cursor], ""), (text[cursor : cursor + 1] or suggestion[:1] or " ", "cursor"))
        if suggestion:
            return (*head, (suggestion[1:], "dim"), ("   → accepts", "dim"))
        return (*head, (text[cursor + 1 :], "") if text else (f" {hint}", "dim"))

    @property
    def _suffix(self) -> str:
        """Return the unique completion of the command line, if its cursor is at the end; else ""."""
        editor, completions = self._editor, self._completion
        at_end = editor is not None and self.field == "command" and editor.cursor == len(editor.text)
        return completions.suffix if at_end and completions.text == self.form.command else ""

    def status(self) -> list[str]:
        """Return the names that the typed path may become."""
        completions = self._completion
        if self.field != "command" or completions.text != self.form.command or len(completions.names) < 2:
            return []
        return [clip("  ".join(completions.names), max(20, self.width // 2))]

    def _machine(self) -> str:
        if self.form.simulated is None:
            return "looking for a GPU"
        if self.form.simulated:
            return "the simulated GPU: correct results, modeled timing"
        return "the GPU" if self.has_gpu is not False else "the GPU (not found on this machine)"

    # -- keys

    def move(self, step: int) -> None:
        """Another field."""
        self.place = max(0, min(self.place + step, len(FIELDS) - 1))
        self._editor = self._new_editor()
        self.request_redraw()

    def move_to(self, end: int) -> None:
        """The first or the last field."""
        self.move(len(FIELDS) if end else -len(FIELDS))

    def shift(self, step: int) -> None:
        """The next choice of a field that offers some."""
        form = self.form
        if self.field == "probe" and self.probes:
            names = [probe.name for probe in self.probes]
            place = names.index(form.probe) if form.probe in names else 0
            form.probe = names[(place + step) % len(names)]
        elif self.field == "simulated":
            form.simulated = not form.simulated
        elif self.field == "benchmark":
            form.benchmark = not form.benchmark
        self.request_redraw()

    def type_key(self, key: str, character: str | None) -> bool:
        """Type a key into the current field. Return whether it did something there."""
        editor = self._editor
        if editor is None or key in _LEAVING_KEYS or (character is None and not editor.is_edit_key(key)):
            return False
        if character is not None and not character.isprintable() and not editor.is_edit_key(key):
            return False
        if key in _ACCEPT_KEYS and self._suffix:
            editor.insert(self._suffix)
        else:
            editor.press(key, character)
        self._keep(editor)
        return True

    def paste(self, text: str) -> bool:
        """Put a pasted text into the current field."""
        if self._editor is None:
            return False
        self._editor.insert(text)
        self._keep(self._editor)
        return True

    def _keep(self, editor: Prompt) -> None:
        setattr(self.form, self.field, editor.text)
        if self.field == "command":
            self.view_host.tables.submit((self, "paths"), partial(completion, editor.text), self._complete)
        self.request_redraw()

    def _complete(self, completions: Completion) -> None:
        self._completion = completions
        self.request_redraw()

    def click(self, row: int, column: int = 0) -> None:
        """Move to the clicked field."""
        del column
        row_of_form = self._top + row
        if row_of_form < ROWS:
            place = row_of_form if row_of_form <= _PROBE_PLACE else row_of_form - 1
            self.move(place - self.place)

    def text_to_copy(self) -> str:
        """The command line that does the same."""
        return self.form.command_line()


class FindingsView(TextView):
    """Findings about this machine, problems first."""

    def __init__(self, view_host: ViewHost, name: str) -> None:
        super().__init__(view_host, name, "checking this machine")
        self.findings: Sequence[MachineFinding] = ()

    def learn(self, findings: Sequence[MachineFinding]) -> None:
        """Show these."""
        self.findings = sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.state))
        self.request_redraw()

    @property
    def troubles(self) -> int:
        """Return the number of checks that failed."""
        return sum(finding.state not in _FINE_STATES for finding in self.findings)

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the findings in full if the section has the keys, else each in one line."""
        self.lines = self.in_full(width) if self.focused else self.in_short(width)
        return super().draw(width, height)

    def in_short(self, cells: int) -> list[Line]:
        """A line each; a cut is marked."""
        room = max(0, cells - _NAME_COLUMN - self._name_width() - 2)
        lines = []
        for finding in self.findings:
            text = clip(finding.found, room)
            free_cells = room - width(text)
            advice = clip(f"  → {finding.advice}", free_cells) if finding.advice and free_cells > _MIN_ADVICE else ""
            lines.append((*self._head(finding), (text, "dim"), (advice, "")))
        return lines

    def in_full(self, width: int) -> list[Line]:
        """Return the findings as texts of as many lines as they need."""
        indent = _NAME_COLUMN + self._name_width() + 2
        lines: list[Line] = []
        for finding in self.findings:
            texts = wrap(finding.found, max(20, width - indent - 1)) or [""]
            lines.append((*self._head(finding), (texts[0], "dim")))
            lines += [((" " * indent, ""), (part, "dim")) for part in texts[1:]]
            advice = wrap(f"→ {finding.advice}", max(20, width - indent - 1)) if finding.advice else []
            lines += [((" " * indent, ""), (part, "")) for part in advice]
        return lines

    def _name_width(self) -> int:
        return max((len(finding.name) for finding in self.findings), default=0)

    def _head(self, finding: MachineFinding) -> Line:
        glyph, role = _STATE_GLYPHS[finding.state]
        return ((f" {glyph} ", role), (f"{pad(finding.name, self._name_width())}  ", ""))
