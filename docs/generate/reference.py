"""References that are made from the code: commands, probes, metrics, JSON documents."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tui_probe.cli.main import build_parsers
from tui_probe.cli.parser import COMMANDS
from tui_probe.probe_files.catalogue import built_in_sets, known_probes
from tui_probe.probekit.registry import all_probes
from tui_probe.schemas import read_schema, schema_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_probe.cli.parser import Parser


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; cells are text in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(' '.join(cell.split()).replace('|', '&#124;') for cell in line)} |" for line in lines
    )


def commands_page() -> str:
    """All commands with their options, as argparse knows them."""
    parts = [
        "# Commands",
        "Options that several commands share are repeated. `tui-probe COMMAND --help` shows the main ones.",
    ]
    for name in COMMANDS:
        parser = build_parsers(name)[1]
        assert parser is not None
        parts += [f"## tui-probe {name}", str(parser.description), f"```text\n{_usage(parser)}\n```"]
        rows = [_argument(parser, action) for action in parser._actions if action.help != argparse.SUPPRESS]
        parts.append(table(("argument", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def _usage(parser: Parser) -> str:
    """Return the usage without the name of every option: those are in the table."""
    optional = "[OPTIONS] " if any(action.option_strings for action in parser._actions) else ""
    positional = [_word(action) for action in parser._get_positional_actions() if action.help != argparse.SUPPRESS]
    return f"{parser.prog} {optional}{' '.join(positional)}".rstrip()


def _word(action: argparse.Action) -> str:
    """Return a positional argument as usages show it."""
    name = str(action.metavar or action.dest).removesuffix("...")
    many = {"*": f"[{name}...]", "+": f"{name}...", "?": f"[{name}]", argparse.REMAINDER: f"{name}..."}
    return many.get(str(action.nargs), name)


def _argument(parser: Parser, action: argparse.Action) -> tuple[str, str]:
    names = ", ".join(f"`{option}`" for option in action.option_strings) or f"`{_word(action)}`"
    value = ""
    if action.option_strings and action.nargs != 0:
        value = str(action.metavar or "").strip() or "/".join(map(str, action.choices or ())) or action.dest.upper()
    help_text = parser._get_formatter()._expand_help(action) if action.help else ""
    return f"{names}{f' `{value}`' if value else ''}", _plain(help_text)


def _plain(text: str) -> str:
    """Return text with the signs that mean something in Markdown escaped."""
    return "".join(f"\\{sign}" if sign in "*_<>[]" else sign for sign in text)


def probes_page() -> str:
    """All built-in probes and sets."""
    sets = [(f"`{name}`", known.title, ", ".join(known.choices)) for name, known in built_in_sets().items()]
    parts = ["# Probes", "`tui-probe probes NAME` prints the source of a probe.", "## Sets"]
    parts.append(table(("set", "measures", "probes"), ((name, _plain(title), _plain(of)) for name, title, of in sets)))
    for probe in known_probes():
        facts = (
            ("measures", probe.measures), ("unit", probe.unit), ("cost", probe.cost), ("weight", probe.weight),
            ("checked", probe.checked), ("saves", "; ".join(probe.saved)),
        )  # fmt: skip
        rows = [(label, _plain(text)) for label, text in facts if text]
        parts += [f"## {probe.name}", f"{_plain(probe.title)}.", table(("", ""), rows)]
    return "\n\n".join(parts) + "\n"


def metrics_page() -> str:
    """All metrics by probe, under the keys that JSON, CSV and the API use."""
    parts = ["# Metrics", "A metric has the same key in JSON, CSV, `compare --metric` and the Python API. An unmeasured"
             " metric is `null`, in text `–`."]  # fmt: skip
    for probe in all_probes():
        if probe.metrics:
            rows = [
                (f"`{m.key}`", _plain(m.title), _plain(m.unit) or "count", m.better, m.over_launches)
                for m in probe.metrics
            ]
            about = f"What it measures, and its cost: [{probe.name}](probes.md#{probe.name})."
            parts += [f"## {probe.name}", about, table(("key", "metric", "unit", "better", "over launches"), rows)]
    return "\n\n".join(parts) + "\n"


def schemas_page() -> str:
    """Fields of the JSON documents, and their schemas as files."""
    parts = [
        "# JSON Schemas",
        "`tui-probe schema NAME` prints a schema. A document may have more fields than its schema.",
    ]
    for name in schema_names():
        schema = read_schema(name)
        rows = [
            (f"`{key}`", f"`{_type(of)}`", _plain(of.get("description", "")))
            for key, of in schema["properties"].items()
        ]
        title = _plain(schema["title"])
        parts += [f"## {name}", f"{title}: [{name}.json]({name}.json)", table(("field", "type", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a field in words of JSON Schema."""
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kind = schema.get("type", "object")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
