"""Fuse counting probes into one probe, whose snippets a kernel has all together, and write the files of each part.

The fused probe is a probe like any other, so that insertion, verification, forms and grafts see one probe. Registers,
maps and points of each part have a prefix of that part; a kernel's own names differ from all of them.

The files of a part are those of the fused kernel, with the part's own maps and sites. So the directory of each probe
in a trace has the same files whether a kernel has it by itself or with others.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.engine.kernel_cache import PREPARED_FILES
from tui_probe.engine.kernel_texts import with_note
from tui_probe.engine.refusals import is_for_instructions, no_match_reason
from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.whole_files import put_file, put_link, read_file, write_file
from tui_probe.probe_model.probe import FileLocation, Locate, Probe, ProbeAbout, Save, Snippet, SnippetCode
from tui_probe.ptx.lexer import NAME
from tui_probe.trace.kernel_files import SITES_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tui_probe.probe_model.probe import ProbePoint, SnippetStatement

_NAME: Final = re.compile(NAME)
_NO_LOCATION: Final = FileLocation("", 0)
_INFO_FILE: Final = "kernel.info"
_LINKED_FILES: Final = (*(file for file in PREPARED_FILES if file not in (_INFO_FILE, SITES_FILE)), "process.log")
_MAP_LINE: Final = re.compile(r"(storage|reduce|sites) (\d+) (.*)")
_HEAD_LINES: Final = 3
"""Kernel name, parameters, number of maps."""


def part_prefix(index: int) -> str:
    """Return the prefix of the names of a part, by its place among the parts."""
    return f"p{index}_"


def fuse(parts: Sequence[Probe]) -> Probe:
    """Return the probe that does what all parts do, in their order."""
    renamed_parts = [_rename(part, part_prefix(index)) for index, part in enumerate(parts)]
    return Probe(
        "+".join(part.name for part in parts),
        parts[0].path,
        "\0".join(text for part in parts for text in (part.name, part.source)),
        "",
        {name: kind for part in renamed_parts for name, kind in part.registers.items()},
        tuple(own_map for part in renamed_parts for own_map in part.maps),
        tuple(point for part in renamed_parts for point in part.points),
        ProbeAbout(every_block=any(part.about.every_block for part in parts)),
    )


def _rename(probe: Probe, prefix: str) -> Probe:
    names = {name: _add_prefix(name, prefix) for name in probe.registers}
    return replace(
        probe,
        registers={names[name]: kind for name, kind in probe.registers.items()},
        maps=tuple(replace(own_map, name=prefix + own_map.name, least=None) for own_map in probe.maps),
        points=tuple(_rename_point(point, names, prefix) for point in probe.points),
    )


def _add_prefix(register: str, prefix: str) -> str:
    return f"%{prefix}{register.removeprefix('%')}"


def _rename_point(point: ProbePoint, names: Mapping[str, str], prefix: str) -> ProbePoint:
    entry_snippet, exit_snippet, lean = (
        snippet and _rename_snippet(snippet, names, prefix) for snippet in (point.before, point.after, point.lean)
    )
    return replace(point, name=prefix + point.name, before=entry_snippet, after=exit_snippet, lean=lean)


def _rename_snippet(snippet: Snippet, names: Mapping[str, str], prefix: str) -> Snippet:
    """Return the snippet, read again with other names; its statements keep their places in the probe's file."""
    text = "\n".join(_rename_text(statement, names, prefix) for statement in snippet.statements)
    renamed_snippet = parse_snippet(text, _NO_LOCATION).snippet
    statements = zip(renamed_snippet.statements, snippet.statements, strict=True)
    return replace(
        renamed_snippet, statements=tuple(replace(renamed, place=original.place) for renamed, original in statements)
    )


def _rename_text(statement: SnippetStatement, names: Mapping[str, str], prefix: str) -> str:
    match statement:
        case SnippetCode():
            return _NAME.sub(lambda match: names.get(match[0], match[0]), statement.text)
        case Locate():
            return f"LOCATE [ {prefix}{statement.map} ];"
        case Save():
            values = ", ".join(names.get(value, value) for value in statement.values)
            return f"{'ADD' if statement.adds else 'SAVE'} [ {prefix}{statement.map} ] {{{values}}};"


def write_part(fused: Path, directory: Path, parts: Sequence[Probe], part: Probe) -> None:
    """Write the files of a part that a launch waits for to ``directory``, from those in ``fused``.

    Raises OSError.
    """
    link_files(fused, directory)
    info = part_info(read_file(fused / _INFO_FILE).decode(), parts, part)
    if is_for_instructions(part) and not _has_sites(read_file(fused / SITES_FILE).decode(), parts, part):
        info = with_note(info, no_match_reason(part))
    write_file(directory / _INFO_FILE, info.encode())


def link_files(fused: Path, directory: Path) -> None:
    """Link to the files in ``fused`` that are there by now, or copy them. Raises OSError."""
    for file in _LINKED_FILES:
        if (fused / file).exists() and not (directory / file).exists() and not put_link(fused / file, directory / file):
            put_file(directory / file, read_file(fused / file))


def remove_part(directory: Path) -> None:
    """Remove the files of a part, so that those of the fused kernel stay when it is prepared by itself."""
    for file in (*PREPARED_FILES, "process.log"):
        with contextlib.suppress(OSError):
            (directory / file).unlink()


def part_info(text: str, parts: Sequence[Probe], part: Probe) -> str:
    """Return the ``kernel.info`` of a part: that of the fused kernel, ``text``, with the part's maps only."""
    lines = text.splitlines()
    index = parts.index(part)
    first_map, count = sum(map(_map_count, parts[:index])), _map_count(part)
    maps = lines[_HEAD_LINES : _HEAD_LINES + int(lines[_HEAD_LINES - 1])]
    sites = (_renumber(line, first_map, count) for line in lines[_HEAD_LINES + len(maps) :])
    callback = [f"callback {part.callback}"] if part.callback else []
    lines_of_probe = [
        *lines[: _HEAD_LINES - 1],
        str(count),
        *maps[first_map : first_map + count],
        *filter(None, sites),
        *callback,
    ]
    return "\n".join(lines_of_probe) + "\n"


def _map_count(probe: Probe) -> int:
    """Return the number of a probe's maps in ``kernel.info``, where counts of records are maps, too."""
    return sum(1 if own_map.cap == 1 else 2 for own_map in probe.maps)


def _renumber(line: str, first_map: int, count: int) -> str:
    """Return a line about one of ``count`` maps from ``first_map`` on, numbered from 0; "" for another map."""
    if (match := _MAP_LINE.fullmatch(line)) is None:
        return line
    number = int(match[2]) - first_map
    return f"{match[1]} {number} {match[3]}" if 0 <= number < count else ""


def _has_sites(sites: str, parts: Sequence[Probe], part: Probe) -> bool:
    prefix = part_prefix(parts.index(part))
    return re.search(rf'"points": \[[^\]]*"{prefix}', sites) is not None


def write_part_sites(fused: Path, directory: Path, parts: Sequence[Probe], part: Probe) -> None:
    """Write the ``sites.json`` of a part. Raises OSError, and ValueError if that of the fused kernel is damaged."""
    document = json.loads(read_file(fused / SITES_FILE))
    prefix = part_prefix(parts.index(part))
    document["probes"] = [_part_sites(entry, part.name, prefix) for entry in document["probes"]]
    write_file(directory / SITES_FILE, json.dumps(document).encode())


def _part_sites(entry: dict[str, Any], name: str, prefix: str) -> dict[str, Any]:
    """Return the sites at which points with a prefix are, without it, and the records of maps with that prefix."""
    sites: list[dict[str, Any]] = []
    numbers: dict[int, int] = {}
    for number, site in enumerate(entry["sites"]):
        if points := [point.removeprefix(prefix) for point in site["points"] if point.startswith(prefix)]:
            numbers[number] = len(sites)
            sites.append(site | {"points": points})
    maps = {
        own_map.removeprefix(prefix): {"sites": [numbers[number] for number in records["sites"]]}
        for own_map, records in entry["maps"].items()
        if own_map.startswith(prefix)
    }
    return entry | {"probe": name, "sites": sites, "maps": maps}
