"""Output of a view in full, as text, JSON or CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.csv_output import csv_lines
from tui_probe.draw.printable import dump_json
from tui_probe.draw.spans import clip_line, plain, to_ascii
from tui_probe.draw.table import SCHEMA_VERSION, safe
from tui_probe.draw.view import COMMANDS, Document
from tui_probe.errors import ChoiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import View
    from tui_probe.probekit.page_kinds import ViewSource

VIEW_SCHEMA: Final = "tui-probe.view"


def view_lines(view: View, width: int, height: int | None, *, ascii_only: bool = False) -> Iterator[Line]:
    """The lines of a view: of a drawing exactly ``height``, of a document all, or the first ``height``."""
    lines: Sequence[Line]
    if isinstance(view, Document):
        lines = view.lines(width)
        lines = lines if height is None else lines[:height]
    else:
        work = view.prepare(width, height or 24)
        if work is not None:
            work()
        lines = view.draw(width, height or 24, ascii_only=ascii_only)
    for line in lines:
        shown = ((safe(text), role) for text, role in line)
        yield clip_line(tuple((to_ascii(text) if ascii_only else text, role) for text, role in shown), width)


def text_lines(lines: Iterable[Line]) -> Iterator[str]:
    """Lines without their roles."""
    return (plain(line).rstrip() for line in lines)


def page_head(name: str, source: ViewSource | None) -> dict[str, Any]:
    """Return the subject of a view as data; one of imported files has no trace."""
    if source is None:
        return {"schema": VIEW_SCHEMA, "version": SCHEMA_VERSION, "view": name}
    trace, kernel = source.trace, source.kernel
    return {
        "schema": VIEW_SCHEMA,
        "version": SCHEMA_VERSION,
        "view": name,
        "trace": str(trace.directory).encode("utf-8", "backslashreplace").decode(),
        "simulated": trace.state.simulated,
        "kernel": {"index": kernel.index, "name": kernel.name, "demangled": kernel.demangled, "status": kernel.status},
        "launch": None if source.launch is None else source.launch.number,
    }


def view_document(name: str, source: ViewSource | None, view: View) -> dict[str, Any]:
    """Return a view as a document; ``data`` is its content, None what was not measured."""
    return {**page_head(name, source), "data": view.record()}


def json_lines(name: str, source: ViewSource | None, view: View) -> Iterator[str]:
    """Yield the document of a view as JSON."""
    yield dump_json(view_document(name, source, view), indent=1)


def csv_of_view(view: View) -> Iterator[str]:
    """Yield the rows of a view, the headings first."""
    return csv_lines(view.cells())


def run_commands(view: View, commands: Sequence[str], size: tuple[int, int]) -> list[str]:
    """Give commands to a view, one after another; what it says to them. Raises ChoiceError for one it does not know."""
    texts = []
    for command in commands:
        if not isinstance(view, Document):
            if (work := view.prepare(*size)) is not None:
                work()
            view.draw(*size)  # a cursor is in a picture
        known = view.commands()
        if command not in known:
            listed = ", ".join(f"{name} ({known[name]})" for name in COMMANDS if name in known)
            raise ChoiceError(f"this page has no command {command!r}; it has {listed or 'no commands'}")
        if words := view.press(command):
            texts.append(words)
    return texts
