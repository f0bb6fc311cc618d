"""Typed reading of TOML tables, and of ``[map.X.reduced]``: what is saved of a reduced map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import ProbeFileError
from tui_probe.probe_model.probe import (
    FIELD_BYTES,
    REDUCTION_GROUPS,
    REDUCTION_OPERATIONS,
    Field,
    Level,
    ReducedField,
    Reduction,
    ReductionGroup,
    ReductionOperation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.probe_model.probe import FieldType

_MISSING: Final = "is missing"


class TomlTable:
    """A table of a probe file. ``name`` is its dotted name, "" for the top level."""

    def __init__(self, path: str, source: str, name: str, values: dict[str, object]) -> None:
        self.path = path
        self.source = source
        self.name = name
        self.values = values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def error(self, key: str, message: str) -> ProbeFileError:
        """The error for a key: file, table and key, then what to do."""
        table = f"[{self.name}] " if self.name else ""
        return ProbeFileError(f"{self.path}: {table}{key} {message}")

    def text(self, key: str, default: str | None = None) -> str:
        """A string. Raises ProbeFileError if it is another type, or missing without a default."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, _MISSING if value is None else f"must be a string, not {value!r}")
        return value

    def flag(self, key: str) -> bool:
        """A boolean, false if missing; ``"true"`` and ``"false"`` may be quoted."""
        value = self.values.get(key, False)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {value!r}")
        return value

    def number(self, key: str, default: int | None = None, *, least: int = 0, most: int = 1 << 31) -> int:
        """An integer in ``least … most``; it may be quoted."""
        value = self.values.get(key, default)
        if value is None:
            raise self.error(key, _MISSING)
        number = as_integer(value)
        if number is None or not least <= number <= most:
            raise self.error(key, f"must be a number from {least} to {most}, not {value!r}")
        return number

    def table(self, key: str) -> TomlTable:
        """A table below this one; an empty one if missing."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, f"must be a table, not {value!r}")
        return TomlTable(self.path, self.source, f"{self.name}.{key}" if self.name else key, value)

    def tables(self) -> Iterator[tuple[str, TomlTable]]:
        """The keys whose values are tables, in order."""
        for key, value in self.values.items():
            if isinstance(value, dict):
                yield key, self.table(key)


def as_integer(value: object) -> int | None:
    """A TOML integer or a quoted decimal one; None for anything else."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# Reduction of a map: ``reduce = "block"`` in ``[map.X]``, and the fields of the reduced record in ``[map.X.reduced]``.
#
# Each key of that table is a field of the record, its value an operation and the field that it is applied to, which may
# be left out if it has the same name: ``start = "min"``, ``longest = "max waited"``, ``elapsed = "span from start"``.
# Without the table the sum of each field is kept.

_REDUCE_KEY: Final = "reduce"
_REDUCED_TABLE: Final = "reduced"
_REDUCTION_HINT: Final = "write an operation and a field, such as 'max waited': " + ", ".join(REDUCTION_OPERATIONS)


def read_reduction(table: TomlTable, level: Level, fields: Sequence[Field], cap: int | None) -> Reduction | None:
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
            f"is {group!r}, but a map with level = '{level.name.lower()}' already has such records; omit {_REDUCE_KEY}",
        )
    if cap != 1:
        raise table.error(_REDUCE_KEY, "needs cap = 1: slots with several records cannot be reduced")
    return _reduction_layout(group, _reduced_parts(table, {field.name: field for field in fields}))


_ReducedPart = tuple[str, ReductionOperation, Field, Field | None]


def _reduced_parts(table: TomlTable, fields: Mapping[str, Field]) -> list[_ReducedPart]:
    """Name, operation, source and base of each field that is kept."""
    if _REDUCED_TABLE not in table:
        return [(name, "sum", field, None) for name, field in fields.items()]
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
            raise reduced.error(name, "needs a field to begin from, such as 'span elapsed from start'")
        base = _reduced_field(reduced, name, arguments[-1], fields)
        arguments = arguments[:-2]
    if len(arguments) > 1:
        raise reduced.error(name, f"is {reduced.text(name)!r}: {_REDUCTION_HINT}")
    return name, operation, _reduced_field(reduced, name, arguments[0] if arguments else name, fields), base


def _reduced_field(reduced: TomlTable, name: str, wanted: str, fields: Mapping[str, Field]) -> Field:
    if wanted not in fields:
        raise reduced.error(
            name, f"uses {wanted!r}, which is not a field of the map; its fields are {', '.join(fields)}"
        )
    return fields[wanted]


def _reduction_layout(group: ReductionGroup, parts: Sequence[_ReducedPart]) -> Reduction:
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
