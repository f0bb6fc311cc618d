"""One kernel of a module, with exactly what it needs."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from tui_probe.errors import PtxError
from tui_probe.ptx.lexer import COMMENT, NAME, TRIVIA
from tui_probe.ptx.references import items_by_name, references
from tui_probe.ptx.tree import Directive, Function, Location, Module, Scope, Statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FILE: Final = re.compile(rf"(?:\.loc|\.loc_intermediate|\.file|inlined_at){TRIVIA}([0-9]+)")
_INLINED_NAME: Final = re.compile(rf"function_name{TRIVIA}({NAME})")
_DEBUG: Final = re.compile(rf"{TRIVIA},{TRIVIA}debug(?![A-Za-z0-9_$])")
_COMMENT: Final = re.compile(COMMENT)
_STRING_LABEL: Final = re.compile(rf"({NAME})\s*:")


def find_entry(module: Module, entry: str) -> Function:
    """The kernel of that very name. Raises PtxError, which lists near names, if the module has none."""
    names = []
    for function in module.entries():
        if function.name == entry and function.body_span is not None:
            return function
        names.append(function.name)
    near = get_close_matches(entry, names, 3, 0.5) + [name for name in names if entry in name]
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else f"it has {', '.join(names) or 'none'}"
    raise PtxError(f"the module has no kernel named {entry}; {hint}")


def prune(module: Module, entry: str, needed: Iterable[str] | None = None) -> str:
    """PTX text of the kernel ``entry`` and what it needs of ``module``.

    That is: the version, target and address size, the variables and functions it refers to directly or through
    others, declarations, aliases, and the files that its ``.loc`` directives name. Debug sections go, and
    with them the ``debug`` option of ``.target``, which would demand them; only the strings that ``.loc``
    directives refer to stay. ``needed`` is what ``references`` gives for the kernel, for those who have it already.
    Raises PtxError if there is no such kernel or a body needed is damaged.
    """
    kernel = find_entry(module, entry)
    items = items_by_name(module)
    names = references(module, kernel) if needed is None else needed
    kept = {id(item) for name in names for item in items[name]}
    kept |= {id(item) for item in items[kernel.name]}
    functions = [item for item in module.functions() if id(item) in kept]
    locations = "\n".join(text for function in functions for text in _locations(function.body or (), module.source))
    files, strings = set(_FILE.findall(locations)), set(_INLINED_NAME.findall(locations))
    texts = []
    for item in module.items:
        if isinstance(item, Directive) and item.name != "alias":
            text = _directive(item, files, strings)
        else:
            text = module.source[item.span.start : item.span.end] if id(item) in kept else ""
        texts.append(text)
    return "\n".join(dict.fromkeys(filter(None, texts))) + "\n"


def _locations(statements: Iterable[Statement], source: str) -> Iterator[str]:
    """The text of each ``.loc`` and ``.loc_intermediate``."""
    for node in statements:
        if isinstance(node, Scope):
            yield from _locations(node.body, source)
        elif isinstance(node, Location) or (isinstance(node, Directive) and node.name == "loc_intermediate"):
            yield source[node.span.start : node.span.end]


def _directive(directive: Directive, files: set[str], strings: set[str]) -> str:
    """What stays of a module-scope directive, or ""."""
    match directive.name:
        case "version" | "address_size" | "pragma":
            return directive.text
        case "target":
            return _DEBUG.sub("", directive.text)
        case "file":
            return directive.text if files.intersection(_FILE.findall(directive.text)) else ""
        case "section":
            return _strings(directive.text, strings)
        case _:
            return ""


def _strings(section: str, wanted: set[str]) -> str:
    """The strings of a ``.debug_str`` section that ``.loc`` directives refer to."""
    head, _, body = _COMMENT.sub("", section).partition("{")
    if ".debug_str" not in head.split():
        return ""
    _, *parts = _STRING_LABEL.split(body.rpartition("}")[0])
    kept = [
        f"{name}:{content.rstrip()}" for name, content in zip(parts[::2], parts[1::2], strict=True) if name in wanted
    ]
    return "\n".join((f"{head.strip()}\n{{", *kept, "}")) if kept else ""
