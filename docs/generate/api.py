"""Reference of the Python API, from the docstrings of the names in ``tui_probe.__all__``."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from typing import Any

import tui_probe


def api_page() -> str:
    """All public names with signature, docstring and members."""
    names = [name for name in tui_probe.__all__ if not name.startswith("__")]
    parts = [
        "# Python API",
        "Names of the package `tui_probe`. [The API by example](../topics/python-api.md) explains them.",
    ]
    for name in names:
        parts += _described(name, getattr(tui_probe, name))
    return "\n\n".join(parts) + "\n"


def _described(name: str, value: Any) -> list[str]:
    parts = [f"## {name}", f"```python\n{_signature(f'tui_probe.{name}', value)}\n```", _docstring(value)]
    if inspect.isclass(value) and not issubclass(value, BaseException):
        for member, of in _members(value):
            parts += [f"### {name}.{member}", f"```python\n{_signature(member, of)}\n```", _docstring(_function(of))]
    return [part for part in parts if part]


def _members(value: type) -> list[tuple[str, Any]]:
    """Return the public methods and properties that a class or its bases in this package define, in their order."""
    classes = [base for base in reversed(value.__mro__) if base.__module__.startswith("tui_probe")]
    members = {name: of for base in classes for name, of in vars(base).items() if not name.startswith("_")}
    return [(name, of) for name, of in members.items() if inspect.getdoc(_function(of)) and callable(_function(of))]


def _function(value: Any) -> Any:
    """Return what has the signature and the docstring of a member."""
    match value:
        case property():
            return value.fget
        case cached_property():
            return value.func
        case classmethod() | staticmethod():
            return value.__func__
    return value


def _signature(name: str, value: Any) -> str:
    if inspect.isclass(value):
        return f"class {name}"
    function = _function(value)
    if isinstance(value, (property, cached_property)):
        returned = inspect.signature(function).return_annotation
        return name if returned is inspect.Signature.empty else f"{name}: {returned}"
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    return f"{name}{signature.replace('(self, ', '(').replace('(self)', '()')}"


def _docstring(value: Any) -> str:
    """Return the docstring of an object as Markdown, with examples in blocks of code."""
    text = inspect.getdoc(value) or ""
    text = re.sub(r":\w+:`([\w.~]+)`", r"`\1`", text)
    paragraphs = [f"```python\n{part}\n```" if part.startswith(">>> ") else part for part in text.split("\n\n")]
    return "\n\n".join(paragraphs)
