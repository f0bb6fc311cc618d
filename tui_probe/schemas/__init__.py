"""JSON Schemas of the documents that tui-probe writes: a file per document, and findings, which several contain.

A document may have more fields than its schema names: fields are added without a new version. A version changes if a
field is removed or means something else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tui_probe.errors import UsageError, did_you_mean

_FOLDER: Final = Path(__file__).parent
_COMMON: Final = "finding"
"""The schema that others refer to."""
_CUT_MARK: Final = "omitted"
"""Field of a document that was cut: see ``draw/char_budget.py``."""


def schema_names() -> tuple[str, ...]:
    """The names of the documents."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


def read_schema(name: str) -> dict[str, Any]:
    """Return the schema of a document, complete in itself. Raises UsageError if there is none of this name.

    A document that was cut to a number of characters (``omitted``) may lack any field but those that are left.
    """
    if name not in schema_names():
        hint = did_you_mean(name, schema_names()) or f"; there are {', '.join(schema_names())}"
        raise UsageError(f"there is no schema {name!r}{hint}")
    schema = _read_file(name)
    if _CUT_MARK in schema["properties"]:
        schema["if"] = {"not": {"required": [_CUT_MARK]}}
        schema["then"] = {"required": schema.pop("required")}
    if f"{_COMMON}.json" not in json.dumps(schema):
        return schema
    definition = _read_file(_COMMON)
    complete_schema: dict[str, Any] = json.loads(
        json.dumps(schema).replace(f'"{_COMMON}.json"', f'"#/$defs/{_COMMON}"')
    )
    return {
        **complete_schema,
        "$defs": {_COMMON: {key: value for key, value in definition.items() if not key.startswith("$")}},
    }


def _read_file(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return schema
