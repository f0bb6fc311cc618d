"""The syntax tree back to text.

A node that was parsed prints as the source that its span covers. A node that was made up has an empty span
(``MADE_UP``) and prints from its fields. To change a parsed node, put a made-up one in its place:
``dataclasses.replace(node, operands=…, span=MADE_UP)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.lexer import lex
from tui_probe.ptx.tree import (
    Directive,
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
    Span,
    Statement,
    Symbol,
    TopLevel,
    Variable,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

MADE_UP: Final = Span(0, 0, 0)


def tokens(source: str) -> list[str]:
    """The tokens of ``source`` as text, without white space and comments. Raises PtxError."""
    return [token.text for token in lex(source)]


def print_operand(operand: Operand) -> str:
    """One operand as PTX."""
    match operand:
        case Register():
            return str(operand)
        case Immediate(text) | Raw(text):
            return text
        case Symbol(name, offset):
            return f"{name}+{offset}" if offset else name
        case Memory():
            return _print_memory(operand)
        case Vector(elements):
            return "{" + _print_list(elements) + "}"
        case Group(elements):
            return "(" + _print_list(elements) + ")"
        case Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case Negated(sign, inner):
            return sign + print_operand(inner)


def _print_list(operands: Iterable[Operand]) -> str:
    return ", ".join(map(print_operand, operands))


def _print_memory(memory: Memory) -> str:
    base = "" if memory.base is None else print_operand(memory.base)
    offset = str(memory.offset) if memory.offset or not base else ""
    address = "+".join(filter(None, (base, offset)))
    if memory.coordinates:
        address += ", {" + _print_list(memory.coordinates) + "}"
    return f"[{address}]"


def print_instruction(instruction: Instruction) -> str:
    """One instruction as PTX, from its fields, with guard and semicolon."""
    guard = ""
    if instruction.predicate is not None:
        guard = f"@{'!' if instruction.predicate_negated else ''}{instruction.predicate} "
    opcode = ".".join((instruction.opcode, *instruction.modifiers))
    operands = _print_list(instruction.operands)
    return f"{guard}{opcode} {operands}".rstrip() + ";"


def print_variable(variable: Variable) -> str:
    """One declaration as PTX, from its fields, without semicolon."""
    words = [f".{variable.linkage}" if variable.linkage else "", f".{variable.space}"]
    words.append(f".align {variable.align}" if variable.align else "")
    words.append(f".v{variable.vector}" if variable.vector > 1 else "")
    words.append(f".{variable.type}")
    name = variable.name + (f"<{variable.count}>" if variable.count else "")
    words.append(name + "".join(f"[{extent or ''}]" for extent in variable.shape))
    text = " ".join(filter(None, words))
    return text + (f" = {variable.initializer}" if variable.initializer else "")


def print_statement(statement: Statement, source: str) -> str:
    """One statement of a body: from its span in ``source`` or, made up, from its fields."""
    if isinstance(statement, Scope):
        return "{\n" + _lines(statement.body, source) + "\t}"
    if statement.span.end:
        return source[statement.span.start : statement.span.end]
    match statement:
        case Instruction():
            return print_instruction(statement)
        case Label(name, _, declaration):
            return f"{name}: {declaration}".rstrip()
        case Location(file, line, column):
            return f".loc {file} {line} {column}"
        case Variable():
            return print_variable(statement) + ";"
        case Directive():
            return statement.text


def print_function(function: Function, source: str) -> str:
    """One function: its header from ``source`` or, if its span is made up, from its fields.

    Its body prints statement by statement.
    """
    if not function.span.end:
        header = _print_header(function, source)
    elif function.body_span:
        header = source[function.span.start : function.body_span.start].rstrip()
    else:
        return source[function.span.start : function.span.end]
    if function.body is None:
        return header + "\n;"
    return f"{header}\n{{\n{_lines(function.body, source)}}}"


def print_module(module: Module) -> str:
    """The whole module. What was not changed has the tokens of the source; comments between statements are gone."""
    return _lines(module.items, module.source)


def _print_header(function: Function, source: str) -> str:
    attributes = dict(function.attributes)
    words = [f".{function.linkage}" if function.linkage else "", f".{function.kind}"]
    words.append(".attribute" + attributes.pop("attribute") if "attribute" in attributes else "")
    words.append(_print_parameters(function.returns, source) if function.returns else "")
    words.append(function.name + _print_parameters(function.parameters, source))
    lines = [" ".join(filter(None, words))]
    for name, arguments in attributes.items():
        lines.append(f".{name} {arguments}".rstrip() + (";" if name == "pragma" else ""))
    return "\n".join(lines)


def _print_parameters(parameters: Iterable[Variable], source: str) -> str:
    texts = [source[p.span.start : p.span.end] if p.span.end else print_variable(p) for p in parameters]
    return "(\n\t" + ",\n\t".join(texts) + "\n)" if texts else "()"


def _lines(nodes: Iterable[Statement | TopLevel], source: str) -> str:
    """A line for each node. Variables of one declaration share their span and print once."""
    lines = []
    last = MADE_UP
    for node in nodes:
        if node.span.end and node.span == last:
            continue
        last = node.span
        if isinstance(node, Function):
            lines.append(print_function(node, source) + "\n")
        else:
            indent = "" if isinstance(node, Label) else "\t"
            lines.append(f"{indent}{print_statement(node, source)}\n")
    return "".join(lines)
