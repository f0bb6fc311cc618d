"""A probe written in Python as a TOML probe file."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import toml

from tui_probe.dsl.compiler import compile_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ENCODER: Final = toml.TomlEncoder()


def to_toml(text: str, path: str = "probe.py") -> str:
    """The TOML probe file that the text of a Python probe stands for: read, it gives the same probe.

    ``path`` is for messages and a comment. Raises ProbeFileError.
    """
    name = PurePath(path).name.encode("ascii", "backslashreplace").decode("ascii")
    heading = f"# Compiled from {''.join(letter for letter in name if letter.isprintable())}."
    return "\n".join([heading, *_table("", compile_tables(text, path))])


def _table(name: str, values: Mapping[str, object]) -> Iterator[str]:
    """A table, then the tables in it: ``toml`` alone would put the fields of a map behind all snippets."""
    plain = {key: value for key, value in values.items() if not isinstance(value, dict)}
    if plain:
        yield (f"\n[{name}]\n" if name else "") + toml.dumps(plain, _ENCODER).rstrip("\n")
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _table(f"{name}.{key}" if name else key, value)
    if not name:
        yield ""


def _string(value: str) -> str:
    """PTX, which holds neither quotes nor backslashes, keeps its lines; any other string is on one line.

    ``toml`` alone would write a snippet as one line with ``\\n`` in it, which nobody can read.
    """
    if "\n" in value and '"' not in value and "\\" not in value:
        return f'"""\n{value}"""'
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_ENCODER.dump_funcs[str] = _string
