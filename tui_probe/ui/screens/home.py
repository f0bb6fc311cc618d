"""The screen at the start: recent traces, a form to start a program, and what works on this machine."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.pages.findings_page import all_questions
from tui_probe.ui import keys
from tui_probe.ui.early_keys import EarlyKeys
from tui_probe.ui.prompt import PathPrompt, completion
from tui_probe.ui.screens.lists import PickerItem, PickerScreen
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.session import OpenPath, OpenTrace, StartDemo, StartProgram
from tui_probe.ui.views.form import ROWS, TEXTS, FindingsView, FormView
from tui_probe.ui.views.recent import RecentView
from tui_probe.ui.widgets.pane import Bar, FrameEdge, Pane
from tui_probe.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from textual import events
    from textual.app import ComposeResult

    from tui_probe.draw.spans import Line
    from tui_probe.trace.recent import TraceSummary
    from tui_probe.ui.prompt import Completion
    from tui_probe.ui.session import HomeSources, MachineFinding, ProbeSummary
    from tui_probe.ui.views.view import PaneView
    from tui_probe.verdicts.run_verdict import RunVerdict

INTERVAL = 3.0
"""Seconds between looks for new traces: each look reads the directories of all traces."""
_OF_LIST = frozenset({"enter", "older_runs", *(key.id for key in keys.in_scope("view"))})
"""The ids of the keys that act on the list of traces."""
SECTIONS = {"recent": "Recent traces", "form": "Start a program", "machine": "This machine"}
"""Titles of the sections by name, from the top."""
_ENTER = {"probe": "list of probes", "start": "start"}
"""Words for Enter in fields of the form, by field."""
BARS = 3 + len(SECTIONS)
"""Rows of title, end and hints, and of the title of each section."""
MIN_ROWS = 3
"""Rows of the list of traces, and of the machine's items, at least."""
MIN_ROWS_FOR_ALL = BARS + ROWS + MIN_ROWS + 5
"""Rows of a terminal from which on all sections are open; on a lower one only the one at hand is."""


class HomeScreen(ViewScreen):
    """Three sections; one of them has the keys. Leaves with what was chosen in ``HomeSources.choice``."""

    BINDINGS = keys.bindings("home")

    def __init__(self, home: HomeSources) -> None:
        super().__init__()
        self.home = home
        returns_from_trace = isinstance(home.choice, OpenTrace | OpenPath)
        home.choice = None
        self.recent = RecentView(self, "recent")
        self.form = FormView(self, "form", home.form)
        self.machine = FindingsView(self, "machine")
        self.sections: dict[str, PaneView] = {"recent": self.recent, "form": self.form, "machine": self.machine}
        self._reading: Path | None = None
        """The trace whose verdict is being read."""
        self.early_keys = EarlyKeys(self, lambda: not self.recent.is_loaded, _OF_LIST)
        self.current = "form" if home.notice and not returns_from_trace else "recent"
        self.view.focused = True

    @property
    def can_ask(self) -> bool:
        """A question chooses the probe of the form."""
        return True

    def action_ask(self, probe: str) -> None:
        """Choose the probe that answers it, and continue with the form."""
        self.home.form.probe = probe
        self.enter("form")
        self.form.request_redraw()
        self.notice(f"-p {probe} is selected; now type the command of a program")

    def commands(self) -> list[PickerItem]:
        """Return the entries of the palette besides keys."""
        demo = partial(self._leave_for, StartDemo())
        path = PickerItem(
            "open a path: a trace, a CSV file of ncu, an sqlite file of nsys",
            "tui-probe open",
            value=self._ask_path,
            search_words="file folder directory import",
        )
        return [path, PickerItem("demo: run the example that comes with tui-probe", "tui-probe demo", value=demo)]

    def _ask_path(self) -> None:
        self.prompt = PathPrompt("open", self._open_path, self._look_for_paths)
        self.show_hint()

    def _look_for_paths(self, text: str, on_completion: Callable[[Completion], None]) -> None:
        def show(paths: Completion) -> None:
            on_completion(paths)
            self.show_hint()

        self.tables.submit((self, "paths"), partial(completion, text), show)

    def _open_path(self, name: str) -> None:
        if name.strip():
            self._leave_for(OpenPath(name.strip()))

    @property
    def view(self) -> PaneView:
        """The section with the keys."""
        return self.sections[self.current]

    def compose(self) -> ComposeResult:
        """A title, each section under its own, hints."""
        yield Bar("bar", id="title")
        for place, (name, view) in enumerate(self.sections.items()):
            yield FrameEdge("middle" if place else "top", id=f"head-{name}")
            yield Pane(view, heavy=True, id=name)
        yield FrameEdge("bottom", id="end")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Start to look around."""
        title: Line = ((" tui-probe", "title"), (f" {__version__}  terminal profiler for CUDA kernels", "dim"))
        self.query_one("#title", Bar).show(title)
        self.divide(self.app.size.height)
        self.analyses.submit((self, "machine"), self.home.findings, self._take_findings)
        self.update()
        self.tables.submit((self, "probes"), self.home.probes, self._take_probes)
        self.set_interval(INTERVAL, self.update)
        if self.home.notice:
            self.notice(self.home.notice)
            self.home.notice = ""

    def update(self) -> None:
        """Look for traces."""
        if not self.probe_app.is_backed_up:
            self.tables.submit((self, "recent"), self.home.recent, self._take_recent)

    def _take_recent(self, traces: Sequence[TraceSummary]) -> None:
        is_first = not self.recent.is_loaded
        self.recent.show(traces)
        if is_first and not traces and self.current == "recent":
            self._handle_no_traces()
        self.early_keys.release()

    def _handle_no_traces(self) -> None:
        """Go to the form, since there is no trace; keys that waited for the list are not typed into it."""
        if self.early_keys.drop():
            self.notice("no traces yet; keys typed while loading were ignored")
        self.enter("form")

    def _read_verdict(self) -> None:
        """Read the verdict of the next visible run. At home nothing else reads logs."""
        trace = self.recent.unread if self._reading is None else None
        if trace is not None and not self.probe_app.is_backed_up:
            self._reading = trace
            on_verdict = partial(self._take_verdict, trace)
            self.logs.submit((self, "verdict"), partial(self.home.verdict, trace), on_verdict)

    def _take_verdict(self, trace: Path, verdict: RunVerdict) -> None:
        self._reading = None
        self.recent.learn(trace, verdict)

    def _take_probes(self, probes: Sequence[ProbeSummary]) -> None:
        self.form.probes = probes
        self.form.request_redraw()

    def _take_findings(self, findings: Sequence[MachineFinding]) -> None:
        self.machine.learn(findings)
        self.form.learn(has_gpu=any(f.name == "driver" and f.state == "ok" for f in findings))
        self.divide(self.app.size.height)

    # -- what surrounds the sections

    def show_bars(self) -> None:
        """The titles of the sections, and hints."""
        if not self.is_mounted:
            return
        for name, view in self.sections.items():
            is_current = name == self.current
            note = self._note() if name == "machine" else " · ".join(view.status())
            title = ((f" {SECTIONS[name]} ", "title" if is_current else "dim"),)
            note_line: Line = ((f" {note} ", "dim"),) if note else ()
            self.query_one(f"#head-{name}", FrameEdge).show(title, note_line, focused=is_current)
        self.query_one("#end", FrameEdge).show((), focused=self.current == list(SECTIONS)[-1])
        self.show_hint()
        self._read_verdict()

    def _note(self) -> str:
        total, troubles = len(self.machine.findings), self.machine.troubles
        if not total:
            return ""
        return f"{troubles} of {total} checks need attention" if troubles else "all ok"

    def hints(self) -> list[keys.Key]:
        """The keys of the section."""
        home = {key.id: key for key in keys.in_scope("home")}
        view = {key.id: key for key in keys.in_scope("view")}
        if self.current == "form":
            section_keys = [replace(home["enter"], footer=_ENTER.get(self.form.field, "next field"))]
            if self.form.field not in (*TEXTS, "start"):
                section_keys.append(replace(view["right"], footer="other choice"))
        elif self.current == "recent":
            runs = [home["older_runs"]] if self.recent.has_older else []
            runs += [home["compare_runs"]] if self.recent.previous_run is not None else []
            section_keys = [home["enter"], *runs, view["filter"], home["sort_traces"]]
        else:
            section_keys = [replace(view["down"], footer="scroll"), view["search"]]
        global_keys = [key for key in keys.in_scope("app") if key.id in ("quit", "help", "palette")]
        is_typing = self.current == "form" and self.form.field in TEXTS  # there they are typed
        leave_key = home["leave_home"]
        leave_key = replace(leave_key, keys=leave_key.keys[-1:]) if is_typing else leave_key
        return [
            *section_keys,
            home["section"],
            home["start"],
            leave_key,
            *(global_keys[:1] if is_typing else global_keys),
        ]

    def on_resize(self, event: events.Resize) -> None:
        """Divide the terminal anew."""
        self.divide(event.size.height)

    def divide(self, height: int) -> None:
        """Rows for each section."""
        rows = heights(height, self.current, len(self.machine.in_full(self.app.size.width)))
        for name in SECTIONS:
            pane = self.query_one(f"#{name}", Pane)
            pane.styles.height = rows[name] or 1
            pane.set_class(not rows[name], "hidden")
        self.show_bars()

    def enter(self, section: str) -> None:
        """Let keys go to a section."""
        previous_view = self.view
        previous_view.focused, self.current, self.view.focused = False, section, True
        self.divide(self.app.size.height)
        for view in (previous_view, self.view):
            self.redraw(view)

    # -- keys

    def on_key(self, event: events.Key) -> None:
        """Put typed text into the form, if it has the keys."""
        if self.prompt is None and self.current == "form" and self.form.type_key(event.key, event.character):
            event.stop()
            event.prevent_default()
        elif self.early_keys.hold(event, has_keys=self.current == "recent" and self.prompt is None):
            event.stop()
            event.prevent_default()
            self.notice(f"{keys.key_sign(event.key, event.character)} works after the list of traces has loaded")
        else:
            super().on_key(event)

    def on_paste(self, event: events.Paste) -> None:
        """Put pasted text into the form."""
        if self.prompt is None and self.current == "form" and self.form.paste(event.text):
            event.stop()
        else:
            super().on_paste(event)

    def on_click(self, event: events.Click) -> None:
        """A click goes to a section."""
        if isinstance(event.widget, Pane) and event.widget.id in self.sections:
            self.enter(event.widget.id)

    def action_section(self, step: int) -> None:
        """The next section, or the one before."""
        names = list(SECTIONS)
        self.enter(names[(names.index(self.current) + step) % len(names)])

    def action_again(self) -> None:
        """Run the program of the selected trace again."""
        trace = self.recent.trace
        if self.current != "recent" or trace is None:
            self.notice("select a run in the list of traces, then press R")
        else:
            self.probe_app.run_again(trace.directory, None)

    def action_older_runs(self) -> None:
        """Show the older runs of the command, or fold them."""
        if self.current != "recent":
            self.notice("the key works in the list of traces")
        elif not self.recent.has_older:
            self.notice("this command has no older runs")
        else:
            self.recent.fold()

    def action_export(self) -> None:
        """Write the panel to a file; an empty list of traces would be an empty file."""
        if self.current == "recent" and self.recent.trace is None:
            self.notice("no trace to export; press Enter to run the demo, or Tab to go to the form")
        else:
            super().action_export()

    def action_compare_runs(self) -> None:
        """Compare the selected run with the previous run of the command."""
        candidate, baseline = self.recent.trace, self.recent.previous_run
        if self.current != "recent":
            self.notice("the key works in the list of traces; press Esc to go there")
        elif candidate is None:
            self.notice("there is no trace to compare")
        elif baseline is None:
            self.notice("no previous run of this command; to compare two kernels, press C on both")
        else:
            self.probe_app.compare_runs(baseline.directory, candidate.directory)

    def action_enter(self) -> None:
        """Open the trace; in the form continue, choose a probe, or start."""
        if self.current == "recent":
            self._open_selected()
        elif self.current == "form":
            if self.form.field == "start":
                self.action_start()
            elif self.form.field == "probe":
                self._choose_probe()
            else:
                self.form.move(1)

    def _open_selected(self) -> None:
        trace = self.recent.trace
        if trace is None and self.recent.filter_text:
            self.notice("there is no trace to open")
        elif trace is None:
            self._leave_for(StartDemo())
        else:
            self._leave_for(OpenTrace(trace.directory))

    def _choose_probe(self) -> None:
        names = [probe.name for probe in self.form.probes]
        questions_by_probe = {
            name: f"{question.text} {question.search_words}"
            for question in all_questions()
            for name in (question.probe, *question.probes)
        }
        choices = [_probe_item(probe, questions_by_probe.get(probe.name, "")) for probe in self.form.probes]
        place = names.index(self.home.form.probe) if self.home.form.probe in names else 0
        self.app.push_screen(PickerScreen("Probe", choices, place), self._take_probe)

    def _take_probe(self, name: str | None) -> None:
        if name is not None:
            self.home.form.probe = name
            self.form.move(1)

    def action_start(self) -> None:
        """Start what the form says."""
        if not self.home.form.command.strip():
            self.enter("form")
            self.form.move_to(0)
            self.notice("type the command line of a program, then start it")
        else:
            self._leave_for(StartProgram())

    def _leave_for(self, choice: OpenTrace | OpenPath | StartProgram | StartDemo) -> None:
        self.home.choice = choice
        self.app.exit()

    def action_back(self) -> None:
        """End a filter; from the form to the traces; quit."""
        if self.view.clear_search():
            return
        if self.current != "recent":
            self.enter("recent")
        else:
            self.app.exit()


def _probe_item(probe: ProbeSummary, question: str) -> PickerItem:
    """Return the line of a probe, which is found by the words of the question that it answers, too."""
    detail = f"{probe.measures} Cost: {probe.cost}" if probe.cost else probe.measures
    return PickerItem(probe.name, probe.title, detail, value=probe.name, search_words=question)


def heights(rows: int, current: str, lines: int) -> dict[str, int]:
    """Rows of each section on a terminal of ``rows`` rows; 0: only its title. The machine's words take ``lines``."""
    if rows < MIN_ROWS_FOR_ALL:
        return {name: max(1, rows - BARS) if name == current else 0 for name in SECTIONS}
    room = rows - BARS - ROWS
    machine = min(max(MIN_ROWS, lines), room - MIN_ROWS if current == "machine" else max(MIN_ROWS, room * 2 // 5))
    return {"recent": room - machine, "form": ROWS, "machine": machine}
