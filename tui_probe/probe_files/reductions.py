"""How far a map is reduced: ``reduce = "block"`` in ``[map.X]``, and what is kept in ``[map.X.reduced]``.

Each key of that table is a field of what is kept, its value an operation and the field that it is of, which may be
left out where it has the same name: ``start = "min"``, ``longest = "max waited"``, ``elapsed = "span from start"``.
Without the table the sum of each field is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import (
    FIELD_BYTES,
    GROUPS,
    OPERATIONS,
    Field,
    Group,
    Level,
    Operation,
    ReducedField,
    Reduction,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.engine.model import FieldType
    from tui_probe.probe_files.toml_table import Table

_KEY: Final = "reduce"
_TABLE: Final = "reduced"
_HOW: Final = "write an operation and a field, such as 'max waited': " + ", ".join(OPERATIONS)


def read_reduction(table: Table, level: Level, fields: Sequence[Field], cap: int | None) -> Reduction | None:
    """The reduction of a ``[map.X]`` table with those ``fields``; None without one. Raises ProbeFileError."""
    if _KEY not in table:
        if _TABLE in table:
            raise table.error(_TABLE, f"needs {_KEY}, which says whose records become one: {', '.join(GROUPS)}")
        return None
    group = next((group for group in GROUPS if group == table.text(_KEY).strip().lower()), None)
    if group is None:
        raise table.error(_KEY, f"must be one of {', '.join(GROUPS)}, not {table.text(_KEY)!r}")
    if level is Level.SITE or (level is Level.WARP and group == "warp"):
        raise table.error(_KEY, f"is {group!r}, which a map of level {level.name.lower()} is without it")
    if cap != 1:
        raise table.error(_KEY, "needs cap = 1: records of a slot are kept one by one")
    return _laid_out(group, _parts(table, {field.name: field for field in fields}))


_Part = tuple[str, Operation, Field, Field | None]


def _parts(table: Table, fields: Mapping[str, Field]) -> list[_Part]:
    """Name, operation, source and base of each field that is kept."""
    if _TABLE not in table:
        return [(name, "sum", field, None) for name, field in fields.items()]
    kept = table.table(_TABLE)
    if not kept.values:
        raise table.error(_TABLE, "is empty: name what is kept, such as waited = 'sum'")
    return [_part(kept, name, fields) for name in kept.values]


def _part(kept: Table, name: str, fields: Mapping[str, Field]) -> _Part:
    word, *rest = kept.text(name).split() or [""]
    operation = next((one for one in OPERATIONS if one == word), None)
    if operation is None:
        raise kept.error(name, f"is {kept.text(name)!r}: {_HOW}")
    base = None
    if operation == "span":
        if len(rest) < 2 or rest[-2] != "from":
            raise kept.error(name, "needs a field to begin from, such as 'span elapsed from start'")
        base = _field(kept, name, rest[-1], fields)
        rest = rest[:-2]
    if len(rest) > 1:
        raise kept.error(name, f"is {kept.text(name)!r}: {_HOW}")
    return name, operation, _field(kept, name, rest[0] if rest else name, fields), base


def _field(kept: Table, name: str, wanted: str, fields: Mapping[str, Field]) -> Field:
    if wanted not in fields:
        raise kept.error(name, f"is of {wanted!r}, which is no field of the map: it has {', '.join(fields)}")
    return fields[wanted]


def _laid_out(group: Group, parts: Sequence[_Part]) -> Reduction:
    """Fields of u64 first, then those of u32, each in the order listed, as in the map itself."""
    types: list[FieldType] = ["u64" if operation == "sum" else source.type for _, operation, source, _ in parts]
    places: list[Field | None] = [None] * len(parts)
    offset = 0
    for wanted in ("u64", "u32"):
        for index, kind in enumerate(types):
            if kind == wanted:
                places[index] = Field(parts[index][0], kind, offset)
                offset += FIELD_BYTES[kind]
    made = [
        ReducedField(place, operation, source, base)
        for place, (_, operation, source, base) in zip(places, parts, strict=True)
        if place is not None
    ]
    unit = 8 if "u64" in types else 4
    return Reduction(group, tuple(made), -(-offset // unit) * unit)
