"""Texts of help: how to read each page, the topic of the visible one, and ``tui-probe help`` with generated tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe import help as pages
from tui_probe import input_limits, settings
from tui_probe.draw.shorten import view_heading
from tui_probe.engine import refusals
from tui_probe.pages.views import kind_of, names
from tui_probe.ui import keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ui.views.view import PaneView

_LIVE_PAGES: Final[dict[str, tuple[str, ...]]] = {
    "recent": (
        "The newest traces. The column found shows the limiter of the kernel with the most GPU time and its"
        " utilization, or else that kernel's first finding. ! marks findings that cost time. – means that nothing was"
        " found or the run is still active. The text is computed once and kept in your state directory.",
        "▶3 marks three runs of one command, of which the newest is shown; c shows the others. Below the list are the"
        " findings of the selected run and its differences from the previous run of the same command.",
    ),
    "form": (
        "The program to start, and its options. Paths in the command are completed: → accepts the suggestion after"
        " the cursor. The last line shows the equivalent command line.",
    ),
    "machine": (
        "The results of tui-probe doctor. ✘ is missing, ! needs attention and ○ is optional; each comes with advice.",
    ),
    "figures": (
        "Each value of A and B, and its change. “better” and “worse” depend on the desired direction of the value. –"
        " means not measured.",
    ),
    "kernels": (
        "One row per kernel, sorted by GPU time if launches were timed, else by first launch. 12 of 6 060, or"
        " 12/6.1k, means that 12 launches were probed. Registers and spills are shown as before→after probing; sorting"
        " uses the difference. Slowdown is probed time divided by original time. + marks times of probed launches."
        " Enter opens the findings and all other pages of a kernel.",
        "The column finding shows the first finding of the newest result, or why there is none. ! marks findings that"
        " cost time. On narrow screens, columns disappear in this order: probe memory, time, spills, block, grid,"
        " trend, mode, p99, slowdown, registers, median, launches, limited by, share. Bars need 100 columns. The column"
        " trend shows the times of the last 8 timed launches, newest at the right; a full bar is the longest.",
        "Skipped: there is nothing to probe, e.g. no PTX. Failed: the original ran instead. Excluded: by --kernel or"
        " --exclude. The page below shows the reason and advice.",
    ),
    "kernel": (
        "The selected kernel: whether and why it was probed, with advice, the overhead of the probe, and its"
        " launches. Enter opens the findings.",
    ),
    "process": ("process.log of the selected kernel: how it was pruned, probed and assembled.",),
    "events": (
        "event.log: one line per event of the hook driver, as it happens. [exec] marks launches, [probe] the"
        " preparation of kernels, [mem] allocations, [mod] loaded modules.",
    ),
    "stdout": ("Standard output of the program.",),
    "stderr": ("Standard error of the program.",),
    "results": (
        "The probe's values for each kernel, sorted by GPU time. A kernel with few results has one line per result."
        " With more, each value has its minimum, median and maximum over evenly spaced results. A kernel's results are"
        " read again when their number has doubled, and at the end. Enter on a kernel shows single launches.",
    ),
    "gpu": (
        "The GPUs of the run. During the run, also the GPUs of this machine, with load, memory, clocks and power over"
        " the last minutes.",
    ),
}
"""Explanations of the home screen, of pages of the live screen, and of values of a comparison."""


def explanation(name: str) -> tuple[str, ...]:
    """Explain how to read a page, a paragraph each; nothing of one that is not known."""
    return _LIVE_PAGES.get(name) or (kind_of(name).explanation if name in names() else ())


@dataclass(frozen=True)
class PageTopic:
    """``keys`` are those that only what is visible answers to, each with what it does there."""

    title: str
    paragraphs: Sequence[str]
    keys: Sequence[tuple[keys.Key, str]]


def topic_of(view: PaneView, title: str) -> PageTopic:
    """Return the help topic of a view, which is a page with a ``title`` if it has one."""
    known = kind_of(view.name) if view.name in names() else None
    heading = view_heading(known.title, known.about) if known is not None and title else title or view.name.title()
    commands = view.commands()
    rows = keys.in_scope("drawing", "pages")
    own = [(key, commands[name]) for key in rows if (name := keys.command_of(key)) in commands]
    if view.kind in ("table", "log"):
        own = [(key, key.text) for key in keys.in_scope(view.kind)]
    return PageTopic(heading, view.explanation(), own)


def help_page(topic: str) -> str:
    """The Markdown of a topic, whole. Raises HelpError."""
    tables = {
        "keys": keys.readme_section,
        "page_keys": keys.page_table,
        "settings": settings.readme_section,
        "architectures": refusals.architecture_table,
        "formats": _formats,
        "input_limits": input_limits.markdown_table,
    }
    return pages.read_page(topic, tables)


def _formats() -> str:
    """Files of other profilers; their module takes long to import."""
    from tui_probe.nsight.importers.formats import markdown_table

    return markdown_table()
