"""A probe written in Python as a TOML probe file."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING

from tui_probe.dsl.compiler import compile_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def to_toml(text: str, path: str = "probe.py") -> str:
    """The TOML probe file that the text of a Python probe stands for: read, it gives the same probe.

    ``path`` is for messages and a comment. Raises ProbeFileError.
    """
    name = PurePath(path).name.encode("ascii", "backslashreplace").decode("ascii")
    heading = f"# Compiled from {''.join(letter for letter in name if letter.isprintable())}."
    return "\n".join([heading, *_table("", compile_tables(text, path))]) + "\n"


def _table(name: str, values: Mapping[str, object]) -> Iterator[str]:
    """The lines of a table: its own values first, then the tables in it."""
    plain = {key: value for key, value in values.items() if not isinstance(value, dict)}
    if name and plain:
        yield f"\n[{name}]"
    for key, value in plain.items():
        yield f"{key} = {_value(value)}"
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _table(f"{name}.{key}" if name else key, value)


def _value(value: object) -> str:
    """A number or a string; PTX, which holds neither quotes nor backslashes, keeps its lines."""
    if not isinstance(value, str):
        return str(value)
    if "\n" in value and '"' not in value and "\\" not in value:
        return f'"""\n{value}"""'
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
