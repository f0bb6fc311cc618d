"""Write probe files: of ``tui-probe new-probe``, and TOML of a probe in Python."""

from __future__ import annotations

import json
import keyword
import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, Literal

import toml

from tui_probe.dsl.compiler import compile_tables
from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.probe_files.loading import MAIN_STEM, built_in_files, installed_files, read_probe
from tui_probe.probe_files.option_probes import PYTHON_TEMPLATE, TEMPLATE_TITLE, TOML_TEMPLATE
from tui_probe.probe_model.positions import POSITION_FORMS, parse_positions, suspicious_positions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ENCODER: Final = toml.TomlEncoder()
ProbeLanguage = Literal["python", "toml"]
_LOCATION_PREFIX: Final = re.compile(r"^[^:]*, line \d+: ")
_PROBE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEMPLATES: Final[dict[ProbeLanguage, tuple[str, str]]] = {
    "python": (".py", PYTHON_TEMPLATE),
    "toml": (".toml", TOML_TEMPLATE),
}


def to_toml(text: str, path: str = "probe.py") -> str:
    """The TOML probe file that the text of a Python probe stands for: read, it gives the same probe.

    ``path`` is for messages and a comment. Raises ProbeFileError.
    """
    name = PurePath(path).name.encode("ascii", "backslashreplace").decode("ascii")
    heading = f"# Compiled from {''.join(letter for letter in name if letter.isprintable())}."
    return "\n".join([heading, *_table_lines("", compile_tables(text, path))])


def _table_lines(name: str, values: Mapping[str, object]) -> Iterator[str]:
    """A table, then the tables in it: ``toml`` by itself would put the fields of a map behind all snippets."""
    scalars = {key: value for key, value in values.items() if not isinstance(value, dict)}
    if scalars:
        yield (f"\n[{name}]\n" if name else "") + toml.dumps(scalars, _ENCODER).rstrip("\n")
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _table_lines(f"{name}.{key}" if name else key, value)
    if not name:
        yield ""


def _dump_string(value: str) -> str:
    """PTX, which holds neither quotes nor backslashes, keeps its lines; any other string is on one line.

    ``toml`` by itself would write a snippet as one line with ``\\n`` in it, which no one can read.
    """
    if "\n" in value and '"' not in value and "\\" not in value:
        return f'"""\n{value}"""'
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_ENCODER.dump_funcs[str] = _dump_string


def probe_template(name: str, language: ProbeLanguage, position: str) -> tuple[str, str]:
    """The name of the file and its text, which is a probe that works.

    Raises UsageError for a name that a probe cannot have, and for a position that is none or can be nowhere.
    """
    _refuse_name(name)
    _refuse_position(position)
    suffix, text = _TEMPLATES[language]
    file = name + suffix
    use = _usage_lines(file, "#     " if language == "toml" else "    ")
    text = text.format(name=name, position=position, title=TEMPLATE_TITLE, use=use)
    try:
        suspicious = suspicious_positions(read_probe(text.encode(), Path(file)).positions)
    except ProbeFileError as error:
        raise UsageError(f"{name!r} is not a name for a probe: {_LOCATION_PREFIX.sub('', str(error))}") from error
    if suspicious:
        raise UsageError(f"--at {suspicious[0]}")
    return file, text


def _usage_lines(file: str, margin: str) -> str:
    """Commands to try on the new file, one per line."""
    commands = {
        f"tui-probe check {file} kernels.ptx": "check the probe; show how often each position matches",
        f"tui-probe run -p {file} -- COMMAND": "then: tui-probe show results",
        "tui-probe help probe-language": "the whole language",
    }
    cells = max(map(len, commands))
    return "\n".join(f"{margin}{command:<{cells}}   {text}" for command, text in commands.items())


def _refuse_name(name: str) -> None:
    """Refuse a name that is not a word or would be taken for another probe."""
    if not _PROBE_NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} is not a name for a probe; use letters, digits and _")
    if name == MAIN_STEM:
        raise UsageError(
            f"{name!r} cannot be the name of a probe: {MAIN_STEM}.py and {MAIN_STEM}.toml are the main files of"
            " directories with a probe"
        )
    if name in built_in_files() or name in installed_files():
        raise UsageError(f"{name} is a built-in probe (tui-probe probes {name}); choose another name")


def _refuse_position(text: str) -> None:
    try:
        positions = parse_positions(text)
    except ValueError as error:
        raise UsageError(f"--at: {error}; write {POSITION_FORMS}") from error
    if any(position.is_block for position in positions):
        raise UsageError(
            f"--at {text}: blocks and loops may end at several places, so they cannot be timed; name instructions or"
            f" lines"
        )


def write_new_probe(folder: Path, name: str, language: ProbeLanguage, position: str) -> Path:
    """Write the file into ``folder``. Raises UsageError where it is there already, and OSError."""
    file, text = probe_template(name, language, position)
    path = folder / file
    try:
        with path.open("x", encoding="utf-8") as file_object:
            file_object.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists; choose another name") from None
    return path
