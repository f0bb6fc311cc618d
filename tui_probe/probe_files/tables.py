"""Typed reading of the TOML tables of a probe file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import ProbeFileError

if TYPE_CHECKING:
    from collections.abc import Iterator


_MISSING_MESSAGE: Final = "is missing"


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
            raise self.error(key, _MISSING_MESSAGE if value is None else f"must be a string, not {value!r}")
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
            raise self.error(key, _MISSING_MESSAGE)
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
