"""The one table of keys: bindings, footer, the page behind ``?`` and ``tui-probe help keys`` are made from it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from string import punctuation
from typing import TYPE_CHECKING

from tui_probe.probekit.page_kinds import PAGES, key_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.binding import Binding

# Where a key acts, in the order in which a user meets them.
SCOPES = {
    "app": "Everywhere",
    "tabs": "Pages",
    "home": "Home screen",
    "live": "Live screen",
    "kernels": "Live screen and kernel screen",
    "pages": "Kernel screen, comparison, imported files",
    "view": "In any table, log or page",
    "table": "In the kernel table",
    "log": "In a log",
    "ranges": "On the page of ranges",
    "drawing": "On pages that support it",
    "help": "On the keys page and on help pages",
    "reading": "On the keys page and on help pages",
}

_SCOPE_PLACES = {
    "home": "on the home screen",
    "live": "on the live screen",
    "kernels": "on the live screen and the kernel screen",
    "pages": "on the kernel screen",
    "table": "in the kernel table",
    "log": "in a log",
    "ranges": "on Ranges",
    "drawing": "on Timeline and other drawings",
    "reading": "on help pages",
}
"""The place in which the keys of a scope act, for the message of a page that lacks the key."""
_KEY_PLACES = {
    "level": "on PTX, Diff and SASS",
    "fold": "on Source, Diff, SASS and Log",
    "unit": "on pages with several units or measured columns",
    "order": "on tables",
    "order_back": "on tables",
    "turn": "on tables",
    "mark": "on Source and Timeline",
    "next_event": "on pages of code, waits and times",
    "previous_event": "on pages of code, waits and times",
    "colour": "on density maps",
}
"""Pages on which a key of some drawings and texts acts, by id, for the same message."""
COMBINED_SCOPES = (
    ("app", "home", "view"),
    ("app", "tabs", "live", "kernels", "view", "table", "log", "ranges"),
    ("app", "tabs", "kernels", "pages", "view", "drawing"),
    ("app", "view", "help", "reading", "drawing"),
)
"""Scopes that hold together: in none of these may a key mean two things."""
_MODIFIERS = frozenset({"ctrl", "shift", "alt"})
_OTHER_NAMES = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Signs that Textual names otherwise than Unicode does."""
_CAPITALIZED = ("delete", "insert", "backspace", *(f"f{number}" for number in range(1, 13)))
"""Keys whose signs are their names with a capital."""


@dataclass(frozen=True)
class Key:
    """One row: what ``keys`` (Textual's names) do in a scope. ``footer`` is the short word, "" for none."""

    id: str
    keys: tuple[str, ...]
    action: str
    scope: str
    text: str
    footer: str = ""
    priority: bool = False


TABLE = (
    Key("interrupt", ("ctrl+c",), "interrupt", "app", "interrupt the program; twice within 2 s: ask to terminate it",
        "interrupt", priority=True),
    Key("quit", ("ctrl+q",), "quit", "app", "quit; while the program is running, ask first", "quit", priority=True),
    Key("help", ("question_mark", "f1"), "help", "app", "how to read this page, and all keys", "keys"),
    Key("palette", ("colon", "ctrl+p"), "palette", "app", "command palette", "commands"),
    Key("theme", ("ctrl+t",), "theme", "app", "next theme: dark, light, distinct (for colour-blind users), ansi"),
    Key("redraw", ("ctrl+l",), "redraw", "app", "redraw the screen"),
    *(Key(f"page_{page.key}", (page.key,), f"digit({page.key})", "tabs", f"page {page.title}: {page.description}")
      for page in PAGES if page.key.isdigit()),
    Key("page_0", ("0",), "more_pages", "tabs", "list the other pages, each with a letter", "more pages"),
    Key("next_page", ("greater_than_sign",), "next_page(1)", "tabs", "next page", "page"),
    Key("previous_page", ("less_than_sign",), "next_page(-1)", "tabs", "previous page"),
    Key("enter", ("enter",), "enter", "home", "open the trace; in the form: next field, list of probes, start", "open"),
    Key("section", ("tab",), "section(1)", "home", "next panel: traces, form, machine", "panel"),
    Key("section_back", ("shift+tab",), "section(-1)", "home", "previous panel"),
    Key("start", ("ctrl+s", "f5"), "start", "home", "start the program of the form", "start"),
    Key("older_runs", ("c",), "older_runs", "home", "show or hide older runs of the command", "older runs"),
    Key("compare_runs", ("C",), "compare_runs", "home", "compare the run with the previous run of the command",
        "compare"),
    Key("sort_traces", ("s",), "choose_order", "home", "sort the traces by a column; choose the column again to"
                                                       " reverse",
        "sort"),
    Key("leave_home", ("q", "escape"), "back", "home", "back one level: clear the filter, go to the traces, quit",
        "back"),
    Key("back", ("q", "escape"), "back", "live",
        "back: clear search or filter, leave full size, go to table, go home"),
    Key("next_pane", ("tab", "shift+tab"), "next_pane", "live", "next panel: table or page", "panel"),
    Key("previous_process", ("left_parenthesis",), "step_process(-1)", "live", "previous process of the program"),
    Key("next_process", ("right_parenthesis",), "step_process(1)", "live", "next process of the program"),
    Key("processes", ("P",), "processes", "live", "list the processes of the program"),
    Key("pause", ("space",), "pause", "live", "pause the display; program and recording continue", "pause"),
    Key("record", ("ctrl+r",), "record", "live", "turn recording off (launches run unprobed) or on"),
    Key("stuck", ("K",), "stuck", "live", "show where a kernel is stuck, or rerun with --watchdog"),
    Key("next_found", ("exclamation_mark",), "next_found", "live",
        "next flagged kernel (!)", "finding"),
    Key("zoom", ("z",), "zoom", "live", "switch full size of the focused panel on or off", "full size"),
    Key("previous_kernel", ("left_square_bracket",), "step_kernel(-1)", "kernels", "previous kernel"),
    Key("next_kernel", ("right_square_bracket",), "step_kernel(1)", "kernels", "next kernel", "next kernel"),
    Key("previous_launch", ("left_curly_bracket",), "step_launch(-1)", "kernels", "previous launch of the kernel"),
    Key("next_launch", ("right_curly_bracket",), "step_launch(1)", "kernels", "next launch of the kernel",
        "next launch"),
    Key("compare", ("C",), "compare", "kernels", "mark a kernel or launch, or compare with the marked kernel or launch",
        "compare"),
    Key("probe", ("p",), "probe", "kernels", "show the probe source at the cursor", "probe"),
    Key("leave", ("q", "escape"), "back", "pages",
        "back one level: stop reading, clear search or filter, undo jump, leave", "back"),
    Key("one_pane", ("tab", "shift+tab"), "next_pane", "pages", "next panel"),
    Key("jump", ("enter",), "jump", "pages",
        "open details of the line, access or row",
        "go to"),
    Key("worst", ("exclamation_mark",), "worst", "pages",
        "go to the hotspot: the line, block or change with the highest cost", "finding"),
    Key("again", ("R",), "again", "view",
        "choose a question and run the program again, or compare two runs", "run again"),
    Key("search", ("slash",), "search", "view", "search in the focused panel", "search"),
    Key("next_match", ("n",), "next_match(1)", "view", "next match"),
    Key("previous_match", ("N",), "next_match(-1)", "view", "previous match"),
    Key("filter", ("ampersand",), "filter", "view", "filter: show only lines that contain the typed text", "filter"),
    Key("copy", ("y",), "copy", "view", "copy the selected kernel, or the page (OSC 52, and a file)"),
    Key("whole_names", ("i",), "whole_names", "view", "show full names"),
    Key("export", ("e",), "export", "view", "write the page to a file: text, CSV, JSON, SVG, PNG", "export"),
    Key("up", ("up", "k"), "move(-1)", "view", "up"),
    Key("down", ("down", "j"), "move(1)", "view", "down"),
    Key("page_up", ("pageup", "ctrl+b"), "move_page(-1)", "view", "one page up"),
    Key("page_down", ("pagedown", "ctrl+f"), "move_page(1)", "view", "one page down"),
    Key("home", ("home", "g"), "move_to(0)", "view", "go to the start"),
    Key("end", ("end", "G"), "move_to(-1)", "view", "go to the end; in a log: follow new lines"),
    Key("left", ("left", "h"), "shift(-1)", "view", "left"),
    Key("right", ("right", "l"), "shift(1)", "view", "right"),
    Key("open", ("enter",), "open", "table", "open the selected kernel", "open"),
    Key("sort", ("s",), "choose_order", "table", "sort any table by a column; choose the column again to"
                                                 " reverse", "sort"),
    Key("reverse", ("r",), "reverse", "table", "reverse the order"),
    Key("status", ("v",), "next_status", "table",
        "show all kernels, or only the probed, skipped, failed or excluded kernels"),
    Key("follow", ("f",), "follow", "log", "follow the end of the log, or stop following", "follow"),
    Key("tags", ("t",), "tags", "log", "choose the tags to show", "tags"),
    Key("together", ("o",), "together", "ranges", "merge ranges of the same name, or list each range", "together"),
    Key("zoom_in", ("w", "plus"), "command('zoom_in')", "drawing", "zoom in on time, at the cursor", "zoom"),
    Key("zoom_out", ("s", "minus"), "command('zoom_out')", "drawing", "zoom out on time"),
    Key("pan_left", ("a",), "command('page_left')", "drawing", "earlier", "pan"),
    Key("pan_right", ("d",), "command('page_right')", "drawing", "later"),
    Key("zoom_in_rows", ("W",), "command('zoom_in_rows')", "drawing", "zoom in on rows", "rows"),
    Key("zoom_out_rows", ("S",), "command('zoom_out_rows')", "drawing", "zoom out on rows"),
    Key("fit", ("f",), "command('fit')", "drawing", "fit: show everything", "fit"),
    Key("next_event", ("full_stop",), "command('next')", "drawing", "next event or change", "next"),
    Key("previous_event", ("comma",), "command('previous')", "drawing", "previous event or change"),
    Key("mark", ("m",), "command('mark')", "drawing", "mark; a second mark measures the distance", "mark"),
    Key("level", ("v",), "command('level')", "drawing", "next level of detail or next version of the text", "level"),
    Key("colour", ("c",), "command('colour')", "drawing", "next colour scheme", "colour"),
    Key("unit", ("u",), "command('unit')", "drawing", "next unit of the axis", "unit"),
    Key("order", ("o",), "command('order')", "drawing", "next order of rows", "order"),
    Key("order_back", ("O",), "command('order_back')", "drawing", "previous order of rows"),
    Key("turn", ("r",), "command('reverse')", "drawing", "reverse the order of rows", "reverse"),
    Key("select", ("x",), "command('select')", "drawing", "next selection, such as an SM or a block", "select"),
    Key("fold", ("z",), "command('fold')", "drawing", "hide or show unchanged lines; in process.log: fold long lines",
        "fold"),
    Key("close", ("q", "escape"), "close", "help", "back", "back"),
    Key("topics", ("t",), "topics", "reading", "help pages: formats, the probe language, the glossary", "topics"),
)  # fmt: skip


def _name_of(sign: str) -> str:
    name = unicodedata.name(sign).lower().replace("-", "_").replace(" ", "_")
    return _OTHER_NAMES.get(name, name)


_SIGNS = {
    **{_name_of(sign): sign for sign in punctuation},
    "escape": "Esc",
    "space": "Space",
    "enter": "Enter",
    "tab": "Tab",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}
"""Signs of other keys, by Textual's names."""


def key_sign(key: str, character: str | None = None) -> str:
    """Return a key as a user writes it: ``Ctrl-C`` for ``ctrl+c``, ``[`` for ``left_square_bracket``.

    ``character`` is what it types, if that is known: no table has all signs of all keyboards.
    """
    *modifiers, base = key.split("+")
    if base in _CAPITALIZED or (modifiers and len(base) == 1):
        sign = base.capitalize()
    elif character is not None and character.isprintable() and not character.isspace():
        sign = character
    else:
        sign = _SIGNS.get(base, base)
    return "-".join([*(modifier.capitalize() for modifier in modifiers), sign])


_remapped: dict[str, tuple[str, ...]] = {}
"""Keys that the settings give to rows, by id. They are of the process, as are Textual's bindings, which are of classes.
"""


def key_name(key: str) -> str | None:
    """Return Textual's name of a key as a user writes it (``Ctrl-S``, ``ctrl+s``, ``?``, ``PgUp``); None for no key."""
    names_by_sign = {sign.lower(): name for name, sign in _SIGNS.items()}
    if key.lower() in names_by_sign:
        return names_by_sign[key.lower()]
    head, _, base = key.replace("-", "+").rpartition("+") if len(key) > 1 else ("", "", key)
    modifiers = [modifier.lower() for modifier in head.split("+") if modifier]
    base = base.lower() if modifiers or len(base) > 1 else base
    base = names_by_sign.get(base, base)
    is_known = len(base) == 1 or base in _SIGNS or base in _CAPITALIZED
    return "+".join([*modifiers, base]) if is_known and _MODIFIERS.issuperset(modifiers) else None


def remap(changes: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Give rows other keys, by id, in place of all that were given before. Returns what is wrong, a line each.

    What is wrong (no such row or key, a key that already means something else where both act) is left out.
    """
    _remapped.clear()
    ids = [key.id for key in TABLE]
    problems = []
    for name, user_keys in changes.items():
        names = [key_name(key) for key in user_keys]
        if name not in ids:
            problems.append(f"keys.{name}: unknown id; ids: {', '.join(ids)}")
        elif None in names:
            problems.append(f"keys.{name}: {user_keys[names.index(None)]!r} is not a key")
        else:
            _remapped[name] = tuple(key for key in names if key is not None)
    while (conflict := next(((name, words) for name in _remapped if (words := _conflict_of(name))), None)) is not None:
        del _remapped[conflict[0]]
        problems.append(f"keys.{conflict[0]}: {conflict[1]}")
    return problems


def _conflict_of(name: str) -> str | None:
    """Return the problem that another row has a key of this one where both act; None for none."""
    row = next(key for key in rows() if key.id == name)
    for scopes in COMBINED_SCOPES:
        if row.scope in scopes:
            for rival in in_scope(*scopes):
                common_keys = set(row.keys) & set(rival.keys)
                if rival.id != name and common_keys:
                    return f"{key_sign(min(common_keys))} is already the key of {rival.id} ({rival.text})"
    return None


def keymap() -> dict[str, str]:
    """The keys that were given to rows, as Textual takes them."""
    return {name: ",".join(names) for name, names in _remapped.items()}


def rows() -> list[Key]:
    """The whole table, with the keys that rows have now."""
    return [replace(key, keys=_remapped[key.id]) if key.id in _remapped else key for key in TABLE]


def in_scope(*scopes: str) -> list[Key]:
    """The rows of the given scopes, in the table's order."""
    return [key for key in rows() if key.scope in scopes]


def key_of(row: str) -> str:
    """Return the first key of a row by its id, as a user writes it."""
    return key_sign(next(key for key in rows() if key.id == row).keys[0])


def command_of(key: Key) -> str:
    """The command of ``draw.view`` that a row of the scope ``drawing`` gives."""
    return key.action.removeprefix("command('").removesuffix("')")


def command_of_pressed(pressed: str) -> str:
    """The command of ``draw.view`` that a pressed key gives to a drawing; "" for none."""
    return next((command_of(key) for key in in_scope("drawing") if pressed in key.keys), "")


def unused_key_text(pressed: str, character: str | None, lacking: frozenset[str]) -> str:
    """Return the message about a pressed key that does nothing: where it acts, of the scopes ``lacking`` here."""
    key_places = [
        _KEY_PLACES.get(key.id, _SCOPE_PLACES.get(key.scope))
        for key in rows()
        if pressed in key.keys and key.scope in lacking
    ]
    places = " or ".join(dict.fromkeys(place for place in key_places if place is not None))
    sign = key_sign(pressed, character)
    return (
        f"{sign} does nothing on this page; the key works {places}"
        if places
        else f"{sign} does nothing here; press ? for the keys"
    )


def unused_command_text(command: str) -> str:
    """Return the message about a command of drawings that a page lacks."""
    key = next(key for key in in_scope("drawing") if command_of(key) == command)
    return unused_key_text(key.keys[0], None, frozenset(("drawing",)))


def bindings(*scopes: str) -> list[Binding | tuple[str, str] | tuple[str, str, str]]:
    """Textual bindings of the rows of the given scopes."""
    from textual.binding import Binding

    return [
        Binding(",".join(key.keys), key.action, key.text, id=key.id, priority=key.priority, show=False)
        for key in TABLE
        if key.scope in scopes
    ]


def page_table() -> str:
    """The pages with their keys as Markdown."""
    lines = ["| Key | Page | Content |", "|---|---|---|"]
    lines += [f"| `{key_text(page.key)}` | {page.title} | {page.description} |" for page in PAGES if page.title]
    return "\n".join(lines)


def readme_section() -> str:
    """The table as Markdown."""
    lines = []
    for title in dict.fromkeys(SCOPES.values()):
        lines += [f"**{title}**", "", "| Key | What it does |", "|---|---|"]
        lines += [
            f"| {' '.join(f'`{key_sign(k)}`' for k in key.keys)} | {key.text} |"
            for key in TABLE
            if SCOPES[key.scope] == title
        ]
        lines.append("")
    return "\n".join(lines)
