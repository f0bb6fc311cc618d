"""Read the tables of a probe file, in either of the two TOML dialects, and verify the probe.

Dialect A: one table per probe with ``position``, ``datamodel = "warp:16"``, ``before``, ``after``, ``SAVE.u64 {…};``.
Dialect B: ``regs``, ``[map.X]`` tables, ``[probe.Y]`` tables with ``SAVE [ X ] {…};``.

In both, ``no_pred = true`` runs the snippets of a table in all lanes that come by, and ``yields = true`` leaves them
out of a kernel in which ptxas would serialise more ``wgmma`` for them (:mod:`tui_probe.engine.ptx_preparation`).
``lean`` replaces ``before`` in kernels that lack registers.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.snippet import ParsedSnippet, merge_saves, parse_snippet
from tui_probe.engine.verify import verify_probe
from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.tables import TomlTable, as_integer, read_reduction
from tui_probe.probe_model.positions import POSITION_FORMS, SourceRange, parse_positions
from tui_probe.probe_model.probe import (
    FIELD_BYTES,
    WEIGHTS,
    Field,
    FieldType,
    FileLocation,
    LeastShare,
    Level,
    Map,
    Probe,
    ProbeAbout,
    ProbePoint,
    Save,
    Snippet,
    Weight,
)
from tui_probe.probe_model.storage import QUEUE_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_OTHER_TABLES: Final = frozenset({"about", "map", "phases", "probe"})

_LEVELS: Final = {"thread": Level.THREAD, "warp": Level.WARP, "site": Level.SITE}
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
_EVEN_FIELDS: Final = ["u64", "u32", "u32"]
_PAIR_BYTES: Final = 8
_MAX_RECORD: Final = 4096
_MAX_CAP: Final = 1 << 20
_MAX_SHARED_REGISTERS: Final = 256
_LEAST: Final = re.compile(r"(\d{1,3}) ?% of (\w+)")
_MAX_PERCENT: Final = 100
_MAX_EVERY: Final = 1024


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
        points=_limited(top, contents.points),
        about=_read_about(top),
        phases=_read_phases(top),
    )
    verify_probe(probe)
    return probe


def _limited(top: TomlTable, points: list[ProbePoint]) -> tuple[ProbePoint, ...]:
    """The points, those at instructions limited to the ``lines`` of the file."""
    if "lines" not in top:
        return tuple(points)
    within = _source_range(top, "lines")
    return tuple(replace(point, within=within) if _is_at_instructions(point) else point for point in points)


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
    title, measures, unit, cost, checked = (
        table.text(key, "") for key in ("title", "measures", "unit", "cost", "checked")
    )
    return ProbeAbout(
        title,
        measures,
        unit,
        cost,
        checked,
        weight=_read_weight(table),
        every_block=table.flag("every_block"),
        counts=table.flag("counts") if "counts" in table else None,
    )


def _read_phases(top: TomlTable) -> tuple[tuple[str, SourceRange], ...]:
    """The ``[phases]`` table: names with lines of source."""
    table = top.table("phases")
    return tuple((name, _source_range(table, name)) for name in table.values)


def _read_weight(about: TomlTable) -> Weight | None:
    weight = about.text("weight", "")
    if weight not in ("", *WEIGHTS):
        raise about.error("weight", f"must be {' or '.join(map(repr, WEIGHTS))}, not {weight!r}")
    return weight or None  # type: ignore[return-value]


def _read_dialect_a(top: TomlTable) -> ProbeContents:
    """Read ``[name] position datamodel before after``. Raises ProbeFileError."""
    contents = ProbeContents()
    for name, table in top.tables():
        if name in _OTHER_TABLES:
            continue
        parsed = _snippets(table, name if "datamodel" in table else "")
        _add_point(contents, table, name, parsed, merge=True)
        if "datamodel" in table:
            contents.maps.append(_datamodel_map(table, name, parsed, dynamic=top.flag("dynamic")))
    return contents


def _read_dialect_b(top: TomlTable) -> ProbeContents:
    """Read ``regs``, ``[map.X]`` and ``[probe.Y]``. Raises ProbeFileError."""
    contents = ProbeContents()
    count = top.number("regs", 0, most=_MAX_SHARED_REGISTERS)
    contents.registers = {f"%NR{i}": "b64" for i in range(count)}
    for name, table in top.table("map").tables():
        contents.maps.append(_declared_map(table, name))
    for _, table in top.table("map").tables():
        _refuse_wrong_least(table, contents.maps)
        _refuse_wrong_optional(table, contents.maps)
    for name, table in top.table("probe").tables():
        if "level" in table:
            _parse_level(table, "level", table.text("level"))
        _add_point(contents, table, name, _snippets(table, ""), merge=False)
    return contents


def _snippets(table: TomlTable, own_map: str) -> dict[str, ParsedSnippet]:
    """The ``before``, ``after`` and ``lean`` of a table, parsed."""
    _refuse_misspelt(table)
    parsed = {}
    for key in ("before", "after", "lean"):
        if key in table:
            text = table.text(key)
            parsed[key] = parse_snippet(text, FileLocation(table.path, _snippet_line(table.source, text)), own_map)
    if not parsed.keys() - {"lean"}:
        raise table.error("before", "and 'after' are missing; write PTX for 'before', 'after' or both")
    if "lean" in parsed and "before" not in parsed:
        raise table.error("lean", "replaces 'before', which is missing")
    return parsed


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
    for where, parsed_point in parsed.items():
        contents.declare(table, where, parsed_point.registers)
        snippets[where] = merge_saves(parsed_point.snippet) if merge else parsed_point.snippet
    guarded, yielding = not table.flag("no_pred"), table.flag("yields")
    contents.points.append(
        ProbePoint(
            name,
            positions,
            snippets.get("before"),
            snippets.get("after"),
            guarded,
            yielding,
            snippets.get("lean"),
            table.flag("skips"),
            table.flag("ptx_only"),
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


def _parse_level(table: TomlTable, key: str, text: str) -> Level:
    try:
        return _LEVELS[text.strip().lower()]
    except KeyError:
        raise table.error(key, f"must be 'thread', 'warp' or 'site', not {text!r}") from None


def _datamodel_map(table: TomlTable, name: str, parsed: dict[str, ParsedSnippet], *, dynamic: bool) -> Map:
    """The map of ``datamodel = "warp:16"``, ``"thread:8:128"`` (a cap) or ``"thread:16:count"`` (dynamic)."""
    level, *sizes = table.text("datamodel").split(":")
    record = as_integer(sizes[0]) if sizes else None
    if record is None or len(sizes) > 2:
        raise table.error("datamodel", "must be level:bytes or level:bytes:cap, such as 'warp:16'")
    cap = _parse_cap(table, "datamodel", sizes[1] if len(sizes) == 2 else 1, dynamic="count")
    saves = [(point.snippet, point.save_types) for point in parsed.values() if point.save_types]
    if not saves:
        raise table.error("datamodel", "is present, but the probe saves nothing; add 'SAVE.u64 {%register};'")
    snippet, types = saves[0]
    if any(other != types for _, other in saves):
        raise table.error(
            "after", "saves other fields than 'before'; the two snippets must save the same types in the same order"
        )
    values = [value for save in snippet.statements if isinstance(save, Save) for value in save.values]
    if "" in types:
        raise table.error("datamodel", "needs typed saves; write 'SAVE.u64 {…};' or 'SAVE.u32 {…};'")
    fields = list(zip(_field_names(values), types, strict=True))
    return _make_map(
        table, "datamodel", name, _parse_level(table, "datamodel", level), fields, record, None if dynamic else cap
    )


def _field_names(values: Iterable[str]) -> list[str]:
    """Names for fields that are known only by the values saved: ``%start`` is ``start``."""
    names: list[str] = []
    for value in values:
        base = name = "".join(c if c.isalnum() or c == "_" else "_" for c in value.lstrip("%")).lower() or "value"
        count = 1
        while name in names:
            count += 1
            name = f"{base}_{count}"
        names.append(name)
    return names


def _declared_map(table: TomlTable, name: str) -> Map:
    """The map of a ``[map.X]`` table."""
    level = _parse_level(table, "level", table.text("level"))
    key = "data" if "data" in table else "regs"
    fields: list[tuple[str, str]] = []
    for field_name, value in table.table(key).values.items():
        kind = value[0] if isinstance(value, list) and value else value
        if not isinstance(kind, str):
            raise table.error(f"{key}.{field_name}", f"must be 'u64' or 'u32', not {value!r}")
        fields.append((field_name, kind))
    record = table.number("size", least=4, most=_MAX_RECORD) if "size" in table else None
    cap = _parse_cap(table, "cap", table.values.get("cap", 1), dynamic="dynamic")
    dynamic = str(table.values.get("type", "array")).lower() == "dynamic"
    made = _make_map(table, key, name, level, fields, record, None if dynamic else cap)
    reduction = read_reduction(table, level, made.fields, made.cap)
    return replace(_with_flags(table, level, made), reduction=reduction, least=_read_least(table, level))


def _with_flags(table: TomlTable, level: Level, made: Map) -> Map:
    """The map with its flags, such as ``even`` and ``leader``; each needs some form of it."""
    even, sparse, resident, leader = (table.flag(name) for name in ("even", "sparse", "resident", "leader"))
    types = [field.type for field in made.fields]
    if even and (level is not Level.THREAD or made.cap == 1 or types != _EVEN_FIELDS):
        raise table.error(
            "even", "needs a map with level = 'thread' and several records, whose fields are u64, u32, u32"
        )
    if sparse and (level is not Level.WARP or made.cap != 1 or set(types) != {"u32"}):
        raise table.error("sparse", "needs a map with level = 'warp', cap = 1 and only u32 fields")
    if sparse and made.record_bytes % _PAIR_BYTES:
        raise table.error(
            "sparse",
            f"needs an even number of fields: the record size is {made.record_bytes} bytes, but must be a multiple of"
            f" {_PAIR_BYTES}",
        )
    is_single = level is Level.WARP and made.cap == 1
    if resident and (not is_single or sparse or "reduce" in table):
        raise table.error("resident", "needs level = 'warp' and cap = 1; not with 'sparse' or 'reduce'")
    is_queue = level is Level.WARP and made.cap not in (1, None)
    if leader and (not is_queue or QUEUE_HEADER % made.record_bytes):
        raise table.error("leader", "needs a map with level = 'warp' and several records per warp, of 4, 8 or 16 bytes")
    latest = table.flag("latest")
    if latest and (not leader or made.cap is None or made.cap.bit_count() != 1):
        raise table.error("latest", "needs leader = true, and a cap that is a power of two")
    every = table.number("every", least=2, most=_MAX_EVERY) if "every" in table else 0
    if every and (not leader or latest or every.bit_count() != 1):
        raise table.error("every", "must be a power of two; needs leader = true; not with 'latest'")
    host = table.flag("host")
    if host and (level is not Level.WARP or made.cap == 1 or leader):
        raise table.error("host", "needs level = 'warp' and several records per warp; not with leader = true")
    optional = table.flag("optional")
    return replace(
        made, even=even, sparse=sparse, resident=resident, leader=leader, latest=latest, every=every, host=host,
        optional=optional,
    )  # fmt: skip


def _read_least(table: TomlTable, level: Level) -> LeastShare | None:
    """The share of ``least = "1% of life"``; None without one."""
    if "least" not in table:
        return None
    match = _LEAST.fullmatch(table.text("least").strip())
    if match is None or not 1 <= int(match[1]) <= _MAX_PERCENT:
        raise table.error("least", f"is {table.text('least')!r}; write a percentage of a map, such as '1% of life'")
    if level is not Level.SITE:
        raise table.error("least", "needs a map with level = 'site'")
    return LeastShare(int(match[1]), match[2])


def _refuse_wrong_least(table: TomlTable, maps: Sequence[Map]) -> None:
    """Raise ProbeFileError for a share of a map that has no sum for a launch."""
    least = _read_least(table, Level.SITE) if "least" in table else None
    if least is None:
        return
    reduction = next((own_map.reduction for own_map in maps if own_map.name == least.whole), None)
    if reduction is None or reduction.group != "launch" or (first := reduction.fields[0]).operation != "sum":
        raise table.error("least", f'needs a map {least.whole!r} with reduce = "launch", whose first field is a sum')
    if first.to.offset:
        raise table.error("least", f"needs the sum {first.to.name!r} as the first field of the reduced {least.whole!r}")


def _refuse_wrong_optional(table: TomlTable, maps: Sequence[Map]) -> None:
    """Raise ProbeFileError for an optional map in front of one that all kernels have: results name maps by place."""
    flags = [own_map.optional for own_map in maps]
    if "optional" in table and (flags != sorted(flags) or all(flags)):
        raise table.error("optional", "must be last; declare maps that all kernels have before optional maps")


def _parse_cap(table: TomlTable, key: str, value: object, *, dynamic: str) -> int | None:
    """Records per slot; None if only a launch knows how many it has, which 0 and a word say."""
    if value in (0, "0", dynamic):
        return None
    cap = as_integer(value)
    if cap is None or not 1 <= cap <= _MAX_CAP:
        raise table.error(
            key, f"must be from 1 to {_MAX_CAP}, or 0 (each launch gets the number that it needs), not {value!r}"
        )
    return cap


def _make_map(
    table: TomlTable,
    key: str,
    name: str,
    level: Level,
    fields: list[tuple[str, str]],
    record: int | None,
    cap: int | None,
) -> Map:
    """A map with its fields laid out: u64 first, then u32, each in the order listed."""
    if not fields:
        raise table.error(key, "lists no fields; name at least one field, such as start = 'u64'")
    types: list[FieldType] = []
    for field_name, kind in fields:
        if kind == "u64":
            types.append("u64")
        elif kind == "u32":
            types.append("u32")
        else:
            raise table.error(key, f"has {field_name} of type {kind!r}: must be 'u64' or 'u32'")
    needed = sum(FIELD_BYTES[kind] for kind in types)
    unit = 8 if "u64" in types else 4
    size = -(-needed // unit) * unit if record is None else record
    if not needed <= size <= _MAX_RECORD or size % unit:
        raise table.error(
            key, f"gives records of {size} bytes; the size must be a multiple of {unit}, from {needed} to {_MAX_RECORD}"
        )
    return Map(name, level, _field_layout([name for name, _ in fields], types), size, cap)


def _field_layout(names: list[str], types: list[FieldType]) -> tuple[Field, ...]:
    offset = 0
    offsets = [0] * len(types)
    for wanted in ("u64", "u32"):
        for index, kind in enumerate(types):
            if kind == wanted:
                offsets[index] = offset
                offset += FIELD_BYTES[kind]
    return tuple(Field(*parts) for parts in zip(names, types, offsets, strict=True))
