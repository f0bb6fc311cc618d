"""Fuse counting probes into one probe, whose snippets a kernel has all at the same time.

The fused probe is a probe like any other, so that insertion, verification, forms and grafts see one probe. Registers,
maps and points of each part have a prefix of that part; a kernel's own names differ from all of them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.snippet import parse_snippet
from tui_probe.probe_model.probe import FileLocation, Locate, Probe, ProbeAbout, Save, Snippet, SnippetCode
from tui_probe.ptx.lexer import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.probe_model.probe import ProbePoint, SnippetStatement

_NAME: Final = re.compile(NAME)
_NOWHERE: Final = FileLocation("", 0)


def part_prefix(place: int) -> str:
    """Return the prefix of the names of a part, by its place among the parts."""
    return f"p{place}_"


def fuse(parts: Sequence[Probe]) -> Probe:
    """Return the probe that does what all parts do, in their order."""
    renamed = [_renamed(part, part_prefix(place)) for place, part in enumerate(parts)]
    return Probe(
        "+".join(part.name for part in parts),
        parts[0].path,
        "\0".join(text for part in parts for text in (part.name, part.source)),
        "",
        {name: kind for part in renamed for name, kind in part.registers.items()},
        tuple(own_map for part in renamed for own_map in part.maps),
        tuple(point for part in renamed for point in part.points),
        ProbeAbout(every_block=any(part.about.every_block for part in parts)),
    )


def _renamed(probe: Probe, prefix: str) -> Probe:
    names = {name: _prefixed(name, prefix) for name in probe.registers}
    return replace(
        probe,
        registers={names[name]: kind for name, kind in probe.registers.items()},
        maps=tuple(replace(own_map, name=prefix + own_map.name) for own_map in probe.maps),
        points=tuple(_renamed_point(point, names, prefix) for point in probe.points),
    )


def _prefixed(register: str, prefix: str) -> str:
    return f"%{prefix}{register.removeprefix('%')}"


def _renamed_point(point: ProbePoint, names: Mapping[str, str], prefix: str) -> ProbePoint:
    before, after, lean = (
        snippet and _renamed_snippet(snippet, names, prefix) for snippet in (point.before, point.after, point.lean)
    )
    return replace(point, name=prefix + point.name, before=before, after=after, lean=lean)


def _renamed_snippet(snippet: Snippet, names: Mapping[str, str], prefix: str) -> Snippet:
    """The snippet, read again with other names; its statements keep their places in the probe's file."""
    text = "\n".join(_renamed_text(statement, names, prefix) for statement in snippet.statements)
    parsed = parse_snippet(text, _NOWHERE).snippet
    statements = zip(parsed.statements, snippet.statements, strict=True)
    return replace(parsed, statements=tuple(replace(new, place=old.place) for new, old in statements))


def _renamed_text(statement: SnippetStatement, names: Mapping[str, str], prefix: str) -> str:
    match statement:
        case SnippetCode():
            return _NAME.sub(lambda match: names.get(match[0], match[0]), statement.text)
        case Locate():
            return f"LOCATE [ {prefix}{statement.map} ];"
        case Save():
            values = ", ".join(names.get(value, value) for value in statement.values)
            return f"{'ADD' if statement.adds else 'SAVE'} [ {prefix}{statement.map} ] {{{values}}};"
