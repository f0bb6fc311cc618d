"""References between items of a module, and pruning of a module to one kernel and what it needs."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tui_probe.errors import PtxError
from tui_probe.ptx.lexer import COMMENT, NAME, TRIVIA, TokenKind, tokenize
from tui_probe.ptx.tree import (
    Directive,
    Element,
    Function,
    Immediate,
    Instruction,
    Label,
    Location,
    Memory,
    Module,
    Negated,
    Operand,
    OperandList,
    Pair,
    Raw,
    Register,
    Scope,
    Statement,
    Symbol,
    TopLevel,
    Variable,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NAME: Final = re.compile(NAME)
_FILE_NUMBER: Final = re.compile(rf"(?:\.loc|\.loc_intermediate|\.file|inlined_at){TRIVIA}([0-9]+)")
_INLINED_NAME: Final = re.compile(rf"function_name{TRIVIA}({NAME})")
_DEBUG_OPTION: Final = re.compile(rf"{TRIVIA},{TRIVIA}debug(?![A-Za-z0-9_$])")
_COMMENT: Final = re.compile(COMMENT)
_STRING_LABEL: Final = re.compile(rf"({NAME})\s*:")


def names_in(text: str) -> set[str]:
    """Return every name in ``text``: an initialiser, a prototype."""
    return set(_NAME.findall(text))


def items_by_name(module: Module) -> dict[str, list[TopLevel]]:
    """Items of the module by name: declarations, the definition, an ``.alias`` directive.

    Variables of one declaration stand for each other, since they cannot be distinguished in the text.
    """
    items: dict[str, list[TopLevel]] = defaultdict(list)
    declarations: dict[int, list[TopLevel]] = defaultdict(list)
    for item in module.items:
        declarations[item.span.start].append(item)
    for declared_items in declarations.values():
        for item in declared_items:
            name = alias_of(item)[0] if isinstance(item, Directive) else item.name
            items[name] += declared_items
    items.pop("", None)
    return dict(items)


def direct_references(item: TopLevel) -> set[str]:
    """Return the names that one item mentions and does not declare itself, whether the module has them or not."""
    match item:
        case Function():
            declared = {variable.name for variable in (*item.parameters, *item.returns)}
            return set(_names_in_body(item.body or [], declared))
        case Variable():
            return names_in(item.initializer)
        case Directive():
            return {alias_of(item)[1]}


def references(module: Module, function: Function) -> set[str]:
    """Return the module-scope names that ``function`` needs, those included that what it needs needs in turn.

    Its own name is in the set only if something it needs refers to it. Raises PtxError for a damaged body.
    """
    items = items_by_name(module)
    names: set[str] = set()
    pending = [direct_references(function)]
    while pending:
        new_names = (pending.pop() & items.keys()) - names
        names |= new_names
        pending += [direct_references(item) for name in new_names for item in items[name]]
    return names


def alias_of(directive: Directive) -> tuple[str, str]:
    """Return the two names of ``.alias name, target;``, empty for another directive."""
    if directive.name != "alias":
        return "", ""
    names = [token.text for token in tokenize(directive.text) if token.kind is TokenKind.NAME]
    return (names[0], names[1]) if len(names) > 1 else ("", "")


def _names_in_body(statements: Iterable[Statement], outer: set[str]) -> Iterator[str]:
    """Yield the names used in a scope that neither it nor a scope around it declares."""
    statements = list(statements)
    declared = outer | {node.name for node in statements if isinstance(node, Variable | Label)}
    visited: set[int] = set()  # of operands, which the parser gives to many instructions
    for node in statements:
        match node:
            case Scope():
                yield from _names_in_body(node.body, declared)
            case Instruction():
                for operand in node.operands:
                    if not isinstance(operand, Register | Immediate) and id(operand) not in visited:
                        visited.add(id(operand))
                        yield from _names_in_operand(operand) - declared
            case Variable():
                yield from names_in(node.initializer) - declared
            case Label():
                yield from names_in(node.declaration) - declared
            case Directive():
                yield from names_in(node.text) - declared
            case Location():
                pass


def _names_in_operand(operand: Operand) -> set[str]:
    match operand:
        case Symbol(name):
            return {name}
        case Element(name, index):
            return {name} | _names_in_operand(index)
        case Memory(base, _, coordinates):
            inner = coordinates if base is None else (base, *coordinates)
        case Vector(elements) | OperandList(elements):
            inner = elements
        case Pair(first, second):
            inner = (first, second)
        case Negated(_, negated):
            inner = (negated,)
        case Raw(text):
            return names_in(text)
        case _:
            return set()
    return set().union(*map(_names_in_operand, inner))


def find_entry(module: Module, entry: str) -> Function:
    """Return the kernel of that very name. Raises PtxError, which lists near names, if the module has none."""
    names = []
    for function in module.entries():
        if function.name == entry and function.body_span is not None:
            return function
        names.append(function.name)
    from difflib import get_close_matches  # most names are right

    similar_names = get_close_matches(entry, names, 3, 0.5) + [name for name in names if entry in name]
    hint = (
        f"did you mean {' or '.join(dict.fromkeys(similar_names))}?"
        if similar_names
        else f"it has {', '.join(names) or 'none'}"
    )
    raise PtxError(f"the module has no kernel named {entry}; {hint}")


def prune_to_kernel(module: Module, entry: str, needed_names: Iterable[str] | None = None) -> str:
    """PTX text of the kernel ``entry`` and what it needs of ``module``.

    That is: the version, target and address size, the variables and functions it refers to directly or through
    others, declarations, aliases, and the files that its ``.loc`` directives name. Debug sections go, and
    with them the ``debug`` option of ``.target``, which would demand them; only the strings that ``.loc``
    directives refer to stay. ``needed_names`` are the ``references`` of the kernel, if the caller has them already.
    Raises PtxError if there is no such kernel or a body needed is damaged.
    """
    kernel = find_entry(module, entry)
    items = items_by_name(module)
    names = references(module, kernel) if needed_names is None else needed_names
    kept_ids = {id(item) for name in names for item in items[name]}
    kept_ids |= {id(item) for item in items[kernel.name]}
    functions = [item for item in module.functions() if id(item) in kept_ids]
    locations = "\n".join(
        text for function in functions for text in _location_texts(function.body or (), module.source)
    )
    files, strings = set(_FILE_NUMBER.findall(locations)), set(_INLINED_NAME.findall(locations))
    texts = []
    for item in module.items:
        if isinstance(item, Directive) and item.name != "alias":
            text = _pruned_directive(item, files, strings)
        else:
            text = module.source[item.span.start : item.span.end] if id(item) in kept_ids else ""
        texts.append(text)
    return "\n".join(dict.fromkeys(filter(None, texts))) + "\n"


def _location_texts(statements: Iterable[Statement], source: str) -> Iterator[str]:
    """Yield the text of each ``.loc`` and ``.loc_intermediate``."""
    for node in statements:
        if isinstance(node, Scope):
            yield from _location_texts(node.body, source)
        elif isinstance(node, Location) or (isinstance(node, Directive) and node.name == "loc_intermediate"):
            yield source[node.span.start : node.span.end]


def _pruned_directive(directive: Directive, files: set[str], strings: set[str]) -> str:
    """Return the needed part of a module-scope directive, or ""."""
    match directive.name:
        case "version" | "address_size" | "pragma":
            return directive.text
        case "target":
            return _DEBUG_OPTION.sub("", directive.text)
        case "file":
            return directive.text if files.intersection(_FILE_NUMBER.findall(directive.text)) else ""
        case "section":
            return _debug_strings(directive.text, strings)
        case _:
            return ""


def _debug_strings(section: str, names: set[str]) -> str:
    """Return the strings of a ``.debug_str`` section that ``.loc`` directives refer to."""
    head, _, body = _COMMENT.sub("", section).partition("{")
    if ".debug_str" not in head.split():
        return ""
    _, *parts = _STRING_LABEL.split(body.rpartition("}")[0])
    lines = [
        f"{name}:{content.rstrip()}" for name, content in zip(parts[::2], parts[1::2], strict=True) if name in names
    ]
    return "\n".join((f"{head.strip()}\n{{", *lines, "}")) if lines else ""
