"""Read the maps of a probe file: ``datamodel`` of dialect A, ``[map.X]`` of dialect B, and how a map is reduced.

With ``reduce = "block"`` in ``[map.X]`` one record is saved for all slots of a block. Each key of ``[map.X.reduced]``
is a field of that record. Its value is an operation and the field that it is applied to, which may be left out if it
has the same name: ``start = "min"``, ``longest = "max waited"``, ``elapsed = "span from start"``. Without that table
the sum of each field is saved.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.probe_files.tables import TomlTable, as_integer
from tui_probe.probe_model.probe import (
    FIELD_BYTES,
    REDUCTION_GROUPS,
    REDUCTION_OPERATIONS,
    Field,
    FieldType,
    LeastShare,
    Level,
    Map,
    ReducedField,
    Reduction,
    ReductionGroup,
    ReductionOperation,
    Save,
)
from tui_probe.probe_model.storage import QUEUE_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.engine.snippet import ParsedSnippet

_LEVELS: Final = {"thread": Level.THREAD, "warp": Level.WARP, "site": Level.SITE}
_EVEN_FIELDS: Final = ["u64", "u32", "u32"]
"""Types of the fields of an even map: of a warp's lanes, the first field may rise evenly from lane to lane."""
_PAIR_BYTES: Final = 8
"""Bytes that a lane adds at a time to a sparse map."""
_MAX_RECORD: Final = 4096
"""Bytes of a record."""
_MAX_CAP: Final = 1 << 20
"""Records of a slot."""
_LEAST_SHARE: Final = re.compile(r"(\d{1,3}) ?% of (\w+)")
_MAX_PERCENT: Final = 100
_MAX_EVERY: Final = 1024
"""Iterations of a loop of which the first has records."""
_REDUCE_KEY: Final = "reduce"
_REDUCED_TABLE: Final = "reduced"
_REDUCTION_HINT: Final = "write an operation and a field, such as 'max waited': " + ", ".join(REDUCTION_OPERATIONS)


def parse_level(table: TomlTable, key: str, text: str) -> Level:
    try:
        return _LEVELS[text.strip().lower()]
    except KeyError:
        raise table.error(key, f"must be 'thread', 'warp' or 'site', not {text!r}") from None


def datamodel_map(table: TomlTable, name: str, parsed: dict[str, ParsedSnippet], *, dynamic: bool) -> Map:
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
    if any(save_types != types for _, save_types in saves):
        raise table.error(
            "after", "saves other fields than 'before'; the two snippets must save the same types in the same order"
        )
    values = [value for save in snippet.statements if isinstance(save, Save) for value in save.values]
    if "" in types:
        raise table.error("datamodel", "needs typed saves; write 'SAVE.u64 {…};' or 'SAVE.u32 {…};'")
    fields = list(zip(_field_names(values), types, strict=True))
    return _make_map(
        table, "datamodel", name, parse_level(table, "datamodel", level), fields, record, None if dynamic else cap
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


def declared_map(table: TomlTable, name: str) -> Map:
    """The map of a ``[map.X]`` table."""
    level = parse_level(table, "level", table.text("level"))
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
    plain_map = _make_map(table, key, name, level, fields, record, None if dynamic else cap)
    reduction = _read_reduction(table, level, plain_map.fields, plain_map.cap)
    return replace(_with_flags(table, level, plain_map), reduction=reduction, least=_read_least(table, level))


def _with_flags(table: TomlTable, level: Level, plain_map: Map) -> Map:
    """The map with its flags, such as ``is_even`` and ``leader``; each needs some form of it."""
    is_even, sparse, resident, leader = (table.flag(name) for name in ("even", "sparse", "resident", "leader"))
    types = [field.type for field in plain_map.fields]
    if is_even and (level is not Level.THREAD or plain_map.cap == 1 or types != _EVEN_FIELDS):
        raise table.error(
            "even", "needs a map with level = 'thread', several records, and three fields of types u64, u32, u32"
        )
    if sparse and (level is not Level.WARP or plain_map.cap != 1 or set(types) != {"u32"}):
        raise table.error("sparse", "needs a map with level = 'warp', cap = 1 and only u32 fields")
    if sparse and plain_map.record_bytes % _PAIR_BYTES:
        raise table.error(
            "sparse",
            f"needs an even number of fields: the record size is {plain_map.record_bytes} bytes, but must be a multiple"
            f" of {_PAIR_BYTES}",
        )
    is_single = level is Level.WARP and plain_map.cap == 1
    if resident and (not is_single or sparse or "reduce" in table):
        raise table.error("resident", "needs level = 'warp' and cap = 1; cannot be combined with 'sparse' or 'reduce'")
    is_queue = level is Level.WARP and plain_map.cap not in (1, None)
    if leader and (not is_queue or QUEUE_HEADER % plain_map.record_bytes):
        raise table.error("leader", "needs a map with level = 'warp' and several records of 4, 8 or 16 bytes per warp")
    latest = table.flag("latest")
    if latest and (not leader or plain_map.cap is None or plain_map.cap.bit_count() != 1):
        raise table.error("latest", "needs leader = true, and a cap that is a power of two")
    period = table.number("every", least=2, most=_MAX_EVERY) if "every" in table else 0
    if period and (not leader or latest or period.bit_count() != 1):
        raise table.error("every", "must be a power of two; needs leader = true; cannot be combined with 'latest'")
    host = table.flag("host")
    if host and (level is not Level.WARP or plain_map.cap == 1 or leader):
        raise table.error(
            "host", "needs level = 'warp' and several records per warp; cannot be combined with leader = true"
        )
    optional = table.flag("optional")
    return replace(
        plain_map, even=is_even, sparse=sparse, resident=resident, leader=leader, latest=latest, every=period,
        host=host, optional=optional,
    )  # fmt: skip


def _read_least(table: TomlTable, level: Level) -> LeastShare | None:
    """The share of ``least = "1% of life"``; None without one."""
    if "least" not in table:
        return None
    match = _LEAST_SHARE.fullmatch(table.text("least").strip())
    if match is None or not 1 <= int(match[1]) <= _MAX_PERCENT:
        raise table.error("least", f"is {table.text('least')!r}; write a percentage and a map, such as '1% of life'")
    if level is not Level.SITE:
        raise table.error("least", "needs a map with level = 'site'")
    return LeastShare(int(match[1]), match[2])


def refuse_wrong_least(table: TomlTable, maps: Sequence[Map]) -> None:
    """Raise ProbeFileError for a share of a map that has no sum for a launch."""
    least_share = _read_least(table, Level.SITE) if "least" in table else None
    if least_share is None:
        return
    reduction = next((own_map.reduction for own_map in maps if own_map.name == least_share.whole), None)
    if reduction is None or reduction.group != "launch" or (first_field := reduction.fields[0]).operation != "sum":
        raise table.error(
            "least", f'needs a map {least_share.whole!r} with reduce = "launch", whose first field is a sum'
        )
    if first_field.to.offset:
        raise table.error(
            "least",
            f"needs the sum {first_field.to.name!r} as the first field of a reduced record of map"
            f" {least_share.whole!r}",
        )


def refuse_wrong_optional(table: TomlTable, maps: Sequence[Map]) -> None:
    """Raise ProbeFileError for an optional map in front of one that all kernels have: results name maps by place."""
    flags = [own_map.optional for own_map in maps]
    if "optional" in table and (flags != sorted(flags) or all(flags)):
        raise table.error("optional", "must be last; declare optional maps after the maps that all kernels have")


def _parse_cap(table: TomlTable, key: str, value: object, *, dynamic: str) -> int | None:
    """Records per slot; None if only a launch knows how many it has, which 0 and a word say."""
    if value in (0, "0", dynamic):
        return None
    cap = as_integer(value)
    if cap is None or not 1 <= cap <= _MAX_CAP:
        raise table.error(
            key, f"must be from 1 to {_MAX_CAP}, or 0 (as many records as the launch needs), not {value!r}"
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
    field_bytes = sum(FIELD_BYTES[kind] for kind in types)
    unit = _alignment(types)
    size = _rounded_bytes(types) if record is None else record
    if not field_bytes <= size <= _MAX_RECORD or size % unit:
        raise table.error(
            key,
            f"gives records of {size} bytes; the size must be a multiple of {unit}, from {field_bytes} to"
            f" {_MAX_RECORD}",
        )
    return Map(name, level, _field_layout([name for name, _ in fields], types), size, cap)


def _field_layout(names: Sequence[str], types: Sequence[FieldType]) -> tuple[Field, ...]:
    """The fields in the order listed, with their offsets in a record: u64 first, then u32."""
    offset = 0
    offsets = [0] * len(types)
    for size_type in ("u64", "u32"):
        for index, kind in enumerate(types):
            if kind == size_type:
                offsets[index] = offset
                offset += FIELD_BYTES[kind]
    return tuple(Field(*parts) for parts in zip(names, types, offsets, strict=True))


def _rounded_bytes(types: Sequence[FieldType]) -> int:
    """Bytes of a record with fields of these types: a multiple of its largest field."""
    unit = _alignment(types)
    return -(-sum(FIELD_BYTES[kind] for kind in types) // unit) * unit


def _alignment(types: Sequence[FieldType]) -> int:
    return FIELD_BYTES["u64" if "u64" in types else "u32"]


def _read_reduction(table: TomlTable, level: Level, fields: Sequence[Field], cap: int | None) -> Reduction | None:
    """The reduction of a ``[map.X]`` table with those ``fields``; None without one. Raises ProbeFileError."""
    if _REDUCE_KEY not in table:
        if _REDUCED_TABLE in table:
            raise table.error(
                _REDUCED_TABLE,
                f"needs {_REDUCE_KEY}, which selects the records to combine: {', '.join(REDUCTION_GROUPS)}",
            )
        return None
    group = next((group for group in REDUCTION_GROUPS if group == table.text(_REDUCE_KEY).strip().lower()), None)
    if group is None:
        raise table.error(_REDUCE_KEY, f"must be one of {', '.join(REDUCTION_GROUPS)}, not {table.text(_REDUCE_KEY)!r}")
    if level is Level.SITE or (level is Level.WARP and group == "warp"):
        raise table.error(
            _REDUCE_KEY,
            f"is {group!r}, which combines nothing in a map with level = '{level.name.lower()}'; omit {_REDUCE_KEY}",
        )
    if cap != 1:
        raise table.error(_REDUCE_KEY, "needs cap = 1: slots with several records cannot be reduced")
    return _reduction_layout(group, _reduced_parts(table, {field.name: field for field in fields}))


class _ReducedPart(NamedTuple):
    """A field of a reduced record, without its offset."""

    name: str
    operation: ReductionOperation
    source: Field
    base: Field | None = None


def _reduced_parts(table: TomlTable, fields: Mapping[str, Field]) -> list[_ReducedPart]:
    """Return the fields that are kept."""
    if _REDUCED_TABLE not in table:
        return [_ReducedPart(name, "sum", field) for name, field in fields.items()]
    reduced = table.table(_REDUCED_TABLE)
    if not reduced.values:
        raise table.error(_REDUCED_TABLE, "is empty; name the fields to save, such as waited = 'sum'")
    return [_reduced_part(reduced, name, fields) for name in reduced.values]


def _reduced_part(reduced: TomlTable, name: str, fields: Mapping[str, Field]) -> _ReducedPart:
    word, *arguments = reduced.text(name).split() or [""]
    operation = next((candidate for candidate in REDUCTION_OPERATIONS if candidate == word), None)
    if operation is None:
        raise reduced.error(name, f"is {reduced.text(name)!r}: {_REDUCTION_HINT}")
    base = None
    if operation == "span":
        if len(arguments) < 2 or arguments[-2] != "from":
            raise reduced.error(name, "needs 'from' and the field with the start, such as 'span elapsed from start'")
        base = _reduced_field(reduced, name, arguments[-1], fields)
        arguments = arguments[:-2]
    if len(arguments) > 1:
        raise reduced.error(name, f"is {reduced.text(name)!r}: {_REDUCTION_HINT}")
    source = _reduced_field(reduced, name, arguments[0] if arguments else name, fields)
    return _ReducedPart(name, operation, source, base)


def _reduced_field(reduced: TomlTable, name: str, field_name: str, fields: Mapping[str, Field]) -> Field:
    if field_name not in fields:
        raise reduced.error(
            name, f"uses {field_name!r}, which is not a field of the map; its fields are {', '.join(fields)}"
        )
    return fields[field_name]


def _reduction_layout(group: ReductionGroup, parts: Sequence[_ReducedPart]) -> Reduction:
    types: list[FieldType] = ["u64" if part.operation == "sum" else part.source.type for part in parts]
    reduced_fields = _field_layout([part.name for part in parts], types)
    fields = (
        ReducedField(field, part.operation, part.source, part.base)
        for field, part in zip(reduced_fields, parts, strict=True)
    )
    return Reduction(group, tuple(fields), _rounded_bytes(types))
