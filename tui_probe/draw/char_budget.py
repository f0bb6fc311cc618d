"""Output of at most a number of characters: lines and documents keep what comes first, and say what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_probe.draw import units
from tui_probe.draw.printable import dump_json, printable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

OMITTED: Final = "omitted"
"""Field of a document that was cut: the number of rows and characters left out, and the command that shows all."""
_MIN_TEXT: Final = 40
"""Characters that a cut text keeps."""
_MAX_TEXTS: Final = 50
"""Texts of a document that are cut; what is then too long are its fields."""
_SMALL_LIST: Final = 4
"""Entries of a list that is one value, such as a grid, and is never cut."""


def fit_lines(lines: Iterable[str], chars: int, command: str) -> Iterator[str]:
    """Yield the first lines that have at most ``chars`` characters together, with their line breaks.

    If some are left out, the last line says how many, and names the ``command`` that shows all.
    """
    texts = (printable(text) for piece in lines for text in piece.removesuffix("\n").split("\n"))
    fitting: list[str] = []
    size, omitted = 0, 0
    for text in texts:
        if omitted or size + len(text) + 1 > chars:
            omitted += 1
        else:
            fitting.append(text)
            size += len(text) + 1
    while omitted and size + len(_omission_line(omitted, command)) + 1 > chars and fitting:
        size -= len(fitting.pop()) + 1
        omitted += 1
    yield from fitting
    if omitted:
        yield _omission_line(omitted, command)[: max(chars - 1, 0)]


def _omission_line(count: int, command: str) -> str:
    return f"{units.counted(count, 'line')} omitted; to show all: {command}"


def fit_rows(rows: Iterable[str], chars: int) -> tuple[list[str], int]:
    """Return the first rows that have at most ``chars`` characters with their line breaks, and the number of others."""
    fitting: list[str] = []
    size, omitted = 0, 0
    for row in rows:
        size += len(row.removesuffix("\n")) + 1
        if size > chars:
            omitted += 1
        else:
            fitting.append(row.removesuffix("\n"))
    return fitting, omitted


def first_records(records: Iterable[dict[str, Any]], chars: int) -> tuple[list[dict[str, Any]], int]:
    """Return the records that may fit into a document of ``chars`` characters, and the number of others.

    Records are read one by one, so that those of a large page are never held.
    """
    remaining = iter(records)
    fitting: list[dict[str, Any]] = []
    size = 0
    for record in remaining:
        fitting.append(record)
        size += len(dump_json(record))
        if size > chars:
            break
    return fitting, sum(1 for _ in remaining)


def fit_document(
    document: dict[str, Any], chars: int, command: str, *, kept_fields: Collection[str] = (), omitted_rows: int = 0
) -> str:
    """Return a document as JSON of at most ``chars`` characters.

    Lists lose their last entries, the largest list first, those of the fields ``kept_fields`` after all others; then
    long texts are cut, then the largest fields dropped. What was cut is in the field ``omitted``: the number of rows by
    the path of their list, the names of fields, and the ``command`` that shows all. ``omitted_rows`` rows of the last
    field were left out before.
    """
    copy = _deep_copy(document)
    rows: dict[str, int] = {next(reversed(document)): omitted_rows} if omitted_rows else {}
    fields: list[str] = []
    note = {"rows": rows, "fields": fields, "command": command}
    if omitted_rows or len(dump_json(copy)) > chars:
        copy[OMITTED] = note
        _cut_lists(copy, chars, rows, kept_fields)
        _cut_texts(copy, chars)
        _drop_fields(copy, chars, fields)
    return dump_json(copy)


def _deep_copy(value: Any) -> Any:
    """Return a copy in which every list and object is new."""
    if isinstance(value, dict):
        return {key: _deep_copy(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_deep_copy(entry) for entry in value]
    return value


def _cut_lists(document: dict[str, Any], chars: int, rows: dict[str, int], kept_fields: Collection[str]) -> None:
    """Take entries from the ends of lists until the document fits, from the largest list first."""
    for kept_longest in (False, True):
        while (excess := len(dump_json(document)) - chars) > 0:
            lists = {
                path: entries
                for path, entries in _lists(document)
                if (path.partition(".")[0] in kept_fields) == kept_longest
            }
            if not lists:
                break
            path = max(lists, key=lambda name: len(dump_json(lists[name])))
            rows[path] = rows.get(path, 0) + _shorten_list(lists[path], excess)


def _lists(value: dict[str, Any], path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of a document that may be cut, by their paths; those in entries of a list are cut with these."""
    for key, entry in value.items():
        name = f"{path}.{key}" if path else str(key)
        if name == OMITTED:
            continue
        if isinstance(entry, list) and entry and (len(entry) > _SMALL_LIST or isinstance(entry[0], (dict, list))):
            yield name, entry
        elif isinstance(entry, dict):
            yield from _lists(entry, name)


def _shorten_list(entries: list[Any], excess: int) -> int:
    """Remove the last entries that have ``excess`` characters together, at least one; their number."""
    removed_chars, count = 0, 0
    while entries and (removed_chars < excess or not count):
        removed_chars += len(dump_json(entries.pop())) + 2
        count += 1
    return count


def _cut_texts(document: dict[str, Any], chars: int) -> None:
    """Cut the longest texts until the document fits, or none is long."""
    for _ in range(_MAX_TEXTS):
        excess = len(dump_json(document)) - chars
        longest_entry = max(_texts(document), key=lambda entry: len(entry.text), default=None)
        if excess <= 0 or longest_entry is None or len(longest_entry.text) <= _MIN_TEXT:
            return
        kept_chars = max(_MIN_TEXT, len(longest_entry.text) - excess - 1)
        longest_entry.holder[longest_entry.key] = longest_entry.text[: kept_chars - 1] + "…"


class _TextEntry(NamedTuple):
    """The object or list that holds a text, and its key or index in that."""

    holder: Any
    key: Any

    @property
    def text(self) -> str:
        text: str = self.holder[self.key]
        return text


def _texts(value: Any) -> Iterator[_TextEntry]:
    """Yield all texts of a document but the note on what was cut."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        if isinstance(entry, str):
            yield _TextEntry(value, key)
        elif key != OMITTED:
            yield from _texts(entry)


def _drop_fields(document: dict[str, Any], chars: int, fields: list[str]) -> None:
    """Drop the largest fields until the document fits, all but schema, version and note; at last counts and command."""
    while len(dump_json(document)) > chars:
        names = [name for name in document if name not in ("schema", "version", OMITTED)]
        if not names:
            note = {"rows": {}, "fields": [], "command": document[OMITTED]["command"]}
            document[OMITTED] = note
            note["command"] = note["command"] if len(dump_json(document)) <= chars else None
            return
        field_name = max(names, key=lambda name: len(dump_json(document[name])))
        fields.append(field_name)
        del document[field_name]
