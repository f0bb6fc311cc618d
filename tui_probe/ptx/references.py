"""Which module-scope names a function, a variable or a directive needs."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.lexer import NAME, Kind, lex
from tui_probe.ptx.tree import (
    Directive,
    Element,
    Function,
    Group,
    Immediate,
    Instruction,
    Label,
    Location,
    Memory,
    Module,
    Negated,
    Operand,
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


def names_in(text: str) -> set[str]:
    """Every name that stands in ``text``: an initialiser, a prototype."""
    return set(_NAME.findall(text))


def items_by_name(module: Module) -> dict[str, list[TopLevel]]:
    """What stands in the module for each name: declarations, the definition, an ``.alias`` directive.

    Variables of one declaration stand for each other, since they cannot be told apart in the text.
    """
    items: dict[str, list[TopLevel]] = defaultdict(list)
    declarations: dict[int, list[TopLevel]] = defaultdict(list)
    for item in module.items:
        declarations[item.span.start].append(item)
    for together in declarations.values():
        for item in together:
            name = alias_of(item)[0] if isinstance(item, Directive) else item.name
            items[name] += together
    items.pop("", None)
    return dict(items)


def direct_references(item: TopLevel) -> set[str]:
    """The names that one item mentions and does not declare itself, whether the module has them or not."""
    match item:
        case Function():
            own = {variable.name for variable in (*item.parameters, *item.returns)}
            return set(_in_body(item.body or [], own))
        case Variable():
            return names_in(item.initializer)
        case Directive():
            return {alias_of(item)[1]}


def references(module: Module, function: Function) -> set[str]:
    """The module-scope names that ``function`` needs, those included that what it needs needs in turn.

    Its own name is in the set only if something it needs refers to it. Raises PtxError for a damaged body.
    """
    items = items_by_name(module)
    found: set[str] = set()
    waiting = [direct_references(function)]
    while waiting:
        new = (waiting.pop() & items.keys()) - found
        found |= new
        waiting += [direct_references(item) for name in new for item in items[name]]
    return found


def alias_of(directive: Directive) -> tuple[str, str]:
    """The two names of ``.alias name, target;``, empty for another directive."""
    if directive.name != "alias":
        return "", ""
    names = [token.text for token in lex(directive.text) if token.kind is Kind.NAME]
    return (names[0], names[1]) if len(names) > 1 else ("", "")


def _in_body(statements: Iterable[Statement], outer: set[str]) -> Iterator[str]:
    """The names used in a scope that neither it nor a scope around it declares."""
    statements = list(statements)
    own = outer | {node.name for node in statements if isinstance(node, Variable | Label)}
    seen: set[int] = set()  # of operands, which the parser gives to many instructions
    for node in statements:
        match node:
            case Scope():
                yield from _in_body(node.body, own)
            case Instruction():
                for operand in node.operands:
                    if not isinstance(operand, Register | Immediate) and id(operand) not in seen:
                        seen.add(id(operand))
                        yield from _in_operand(operand) - own
            case Variable():
                yield from names_in(node.initializer) - own
            case Label():
                yield from names_in(node.declaration) - own
            case Directive():
                yield from names_in(node.text) - own
            case Location():
                pass


def _in_operand(operand: Operand) -> set[str]:
    match operand:
        case Symbol(name):
            return {name}
        case Element(name, index):
            return {name} | _in_operand(index)
        case Memory(base, _, coordinates):
            inner = coordinates if base is None else (base, *coordinates)
        case Vector(elements) | Group(elements):
            inner = elements
        case Pair(first, second):
            inner = (first, second)
        case Negated(_, negated):
            inner = (negated,)
        case Raw(text):
            return names_in(text)
        case _:
            return set()
    return set().union(*map(_in_operand, inner))
