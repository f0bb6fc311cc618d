"""Read the tables of a probe file, in either of the two TOML dialects, and verify the probe.

Dialect A: one table per probe with ``position``, ``datamodel = "warp:16"``, ``before``, ``after``, ``SAVE.u64 {…};``.
Dialect B: ``regs``, ``[map.X]`` tables, ``[probe.Y]`` tables with ``SAVE [ X ] {…};``.

In both, ``no_pred = true`` runs the snippets of a table in all lanes that come by, and ``yields = true`` leaves them
out of a kernel in which ptxas would serialise more ``wgmma`` for them (:mod:`tui_probe.engine.ptx_preparation`).
``lean`` replaces ``before`` in kernels that lack registers.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tui_probe.engine.snippet import ParsedSnippet, merge_saves, parse_snippet
from tui_probe.engine.verify import verify_probe
from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.map_tables import (
    datamodel_map,
    declared_map,
    parse_level,
    refuse_wrong_least,
    refuse_wrong_optional,
)
from tui_probe.probe_files.tables import TomlTable, as_integer
from tui_probe.probe_model.positions import POSITION_FORMS, SourceRange, parse_positions
from tui_probe.probe_model.probe import (
    WEIGHTS,
    FileLocation,
    Map,
    Probe,
    ProbeAbout,
    ProbePoint,
    Snippet,
    Weight,
)

_OTHER_TABLES: Final = frozenset({"about", "map", "phases", "probe"})

_POINT_KEYS: Final = (
    "position",
    "pos",
    "datamodel",
    "before",
    "after",
    "lean",
    "no_pred",
    "yields",
    "skips",
    "ptx_only",
    "level",
    "register",
    "registers",
)
_MAX_SHARED_REGISTERS: Final = 256


@dataclass(slots=True)
class ProbeContents:
    """Content of a probe file's tables."""

    registers: dict[str, str] = field(default_factory=dict)
    maps: list[Map] = field(default_factory=list)
    points: list[ProbePoint] = field(default_factory=list)

    def declare(self, table: TomlTable, key: str, registers: dict[str, str]) -> None:
        """Add registers. One that another snippet declared with another type is an error."""
        for name, register_type in registers.items():
            if self.registers.setdefault(name, register_type) != register_type:
                raise table.error(
                    key, f"declares {name} as {register_type}, but {name} is {self.registers[name]} elsewhere"
                )


def probe_of_tables(values: dict[str, object], path: Path, name: str, *, source: str = "", callback: str = "") -> Probe:
    """The probe that the tables of a file make. Lines in messages need its text, ``source``. Raises ProbeFileError.

    ``callback`` is its analysis, if the tables name none.
    """
    top = TomlTable(str(path), source, "", values)
    contents = _read_contents(top)
    if len({own_map.resident for own_map in contents.maps}) > 1:
        raise ProbeFileError(f"{path}: a probe cannot have both resident and other maps; split it into two probes")
    probe = Probe(
        name=name,
        path=path,
        source=source,
        callback=_callback_name(top) or callback,
        registers=contents.registers,
        maps=tuple(contents.maps),
        points=_limit_to_lines(top, contents.points),
        about=_read_about(top),
        phases=_read_phases(top),
        records_copies=top.flag("bulk_copies"),
    )
    verify_probe(probe)
    return probe


def _limit_to_lines(top: TomlTable, points: list[ProbePoint]) -> tuple[ProbePoint, ...]:
    """The points, those at instructions limited to the ``lines`` of the file."""
    if "lines" not in top:
        return tuple(points)
    source_range = _source_range(top, "lines")
    return tuple(replace(point, within=source_range) if _is_at_instructions(point) else point for point in points)


def _is_at_instructions(point: ProbePoint) -> bool:
    return not any(
        position.is_kernel or position.is_block or position.is_source or position.is_wait
        for position in point.positions
    )


def _source_range(table: TomlTable, name: str) -> SourceRange:
    """Read lines of source, such as ``attn.py:22-26``. Raises ProbeFileError."""
    try:
        positions = parse_positions(table.text(name))
    except ValueError as error:
        raise table.error(name, str(error)) from error
    if len(positions) != 1 or positions[0].source is None:
        raise table.error(name, "must be lines of source, such as 'attn.py:22-26'")
    return positions[0].source


def _read_contents(top: TomlTable) -> ProbeContents:
    is_dialect_b = any(key in top for key in ("regs", "map", "probe"))
    contents = _read_dialect_b(top) if is_dialect_b else _read_dialect_a(top)
    if not contents.points:
        raise ProbeFileError(f"{top.path}: the file has no probe; add a table such as [probe.name] with a position")
    strays = [name for name, _ in top.tables() if is_dialect_b and name not in _OTHER_TABLES]
    if strays:
        raise top.error(strays[0], f"is not a known table; write [probe.{strays[0]}] or [map.{strays[0]}]")
    return contents


def _callback_name(top: TomlTable) -> str:
    """The analysis: ``callback``, ``CALLBACK`` or ``analyze_hook``; a path keeps only its stem."""
    for key in ("callback", "CALLBACK", "analyze_hook"):
        if key in top:
            return Path(top.text(key)).name.removesuffix(".py")
    return ""


def _read_about(top: TomlTable) -> ProbeAbout:
    """The ``[about]`` table."""
    table = top.table("about")
    return ProbeAbout(
        title=table.text("title", ""),
        measures=table.text("measures", ""),
        unit=table.text("unit", ""),
        cost=table.text("cost", ""),
        checked=table.text("checked", ""),
        weight=_read_weight(table),
        every_block=table.flag("every_block"),
        counts=table.flag("counts") if "counts" in table else None,
    )


def _read_phases(top: TomlTable) -> tuple[tuple[str, SourceRange], ...]:
    """The ``[phases]`` table: names with lines of source."""
    table = top.table("phases")
    return tuple((name, _source_range(table, name)) for name in table.values)


def _read_weight(table: TomlTable) -> Weight | None:
    weight = table.text("weight", "")
    if weight not in ("", *WEIGHTS):
        raise table.error("weight", f"must be {' or '.join(map(repr, WEIGHTS))}, not {weight!r}")
    return weight or None  # type: ignore[return-value]


def _read_dialect_a(top: TomlTable) -> ProbeContents:
    """Read ``[name] position datamodel before after``. Raises ProbeFileError."""
    contents = ProbeContents()
    for name, table in top.tables():
        if name in _OTHER_TABLES:
            continue
        snippets = _read_snippets(table, name if "datamodel" in table else "")
        _add_point(contents, table, name, snippets, merge=True)
        if "datamodel" in table:
            contents.maps.append(datamodel_map(table, name, snippets, dynamic=top.flag("dynamic")))
    return contents


def _read_dialect_b(top: TomlTable) -> ProbeContents:
    """Read ``regs``, ``[map.X]`` and ``[probe.Y]``. Raises ProbeFileError."""
    contents = ProbeContents()
    count = top.number("regs", 0, most=_MAX_SHARED_REGISTERS)
    contents.registers = {f"%NR{i}": "b64" for i in range(count)}
    for name, table in top.table("map").tables():
        contents.maps.append(declared_map(table, name))
    for _, table in top.table("map").tables():
        refuse_wrong_least(table, contents.maps)
        refuse_wrong_optional(table, contents.maps)
    for name, table in top.table("probe").tables():
        if "level" in table:
            parse_level(table, "level", table.text("level"))
        _add_point(contents, table, name, _read_snippets(table, ""), merge=False)
    return contents


def _read_snippets(table: TomlTable, own_map: str) -> dict[str, ParsedSnippet]:
    """The ``before``, ``after`` and ``lean`` of a table, parsed."""
    _refuse_misspelt(table)
    snippets = {}
    for key in ("before", "after", "lean"):
        if key in table:
            text = table.text(key)
            snippets[key] = parse_snippet(text, FileLocation(table.path, _snippet_line(table.source, text)), own_map)
    if not snippets.keys() - {"lean"}:
        raise table.error("before", "and 'after' are missing; write PTX for 'before', 'after' or both")
    if "lean" in snippets and "before" not in snippets:
        raise table.error(
            "lean", "is a variant of 'before' with fewer registers, but 'before' is missing; add 'before'"
        )
    return snippets


def _refuse_misspelt(table: TomlTable) -> None:
    for key in table.values:
        if key not in _POINT_KEYS and (close := difflib.get_close_matches(key, _POINT_KEYS, 1, 0.8)):
            raise table.error(key, f"is unknown: did you mean {close[0]!r}?")


def _snippet_line(source: str, text: str) -> int:
    """The line at which a snippet is in its file; 0 if it is not there as it is (escapes)."""
    index = source.find(text) if text else -1
    return source.count("\n", 0, index) + 1 if index >= 0 else 0


def _add_point(
    contents: ProbeContents, table: TomlTable, name: str, parsed: dict[str, ParsedSnippet], *, merge: bool
) -> None:
    key = "pos" if "pos" in table else "position"
    try:
        positions = parse_positions(table.text(key))
    except ValueError as error:
        raise table.error(key, f"is wrong: {error}; write {POSITION_FORMS}") from None
    contents.declare(table, "registers", _declared_registers(table))
    snippets: dict[str, Snippet] = {}
    for key_name, parsed_point in parsed.items():
        contents.declare(table, key_name, parsed_point.registers)
        snippets[key_name] = merge_saves(parsed_point.snippet) if merge else parsed_point.snippet
    contents.points.append(
        ProbePoint(
            name,
            positions,
            before=snippets.get("before"),
            after=snippets.get("after"),
            guarded=not table.flag("no_pred"),
            yielding=table.flag("yields"),
            lean=snippets.get("lean"),
            skips=table.flag("skips"),
            ptx_only=table.flag("ptx_only"),
        )
    )


def _declared_registers(table: TomlTable) -> dict[str, str]:
    """``registers = { name = 'b64' }`` or ``register = "2"`` (that many of the shared ones, already declared)."""
    key = "registers" if "registers" in table else "register"
    value = table.values.get(key)
    if value is None or as_integer(value) is not None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(kind, str) for kind in value.values()):
        raise table.error(key, f"must be a table such as {{ '%count' = 'b32' }}, not {value!r}")
    return {str(name): str(kind).removeprefix(".") for name, kind in value.items()}
