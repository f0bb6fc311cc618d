"""A file's module level, read into a Program."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from tui_probe.dsl.building import SPECIAL, constant
from tui_probe.dsl.decorators import read_map, read_probe_function
from tui_probe.dsl.operands import HELPERS
from tui_probe.dsl.program import DeclaredRegister, Program
from tui_probe.dsl.source import Source, words

if TYPE_CHECKING:
    from tui_probe.dsl.expressions import Bits

TYPES: Final[dict[str, Bits]] = {"u64": 64, "u32": 32}
RESERVED: Final = frozenset({*HELPERS, *SPECIAL, *TYPES, "Map", "probe", "range", "CALLBACK"})

_IMPORTABLE: Final = ("tui_probe.dsl", "tui_probe.dsl.language", "__future__")
_ABOUT: Final = ("measures", "unit", "cost", "checked")
_ALLOWED: Final = (
    "a probe file holds imports from tui_probe.dsl, constants (N = 4), registers (start: u64 = 0), "
    "@Map classes and @probe functions"
)


def read_program(source: Source) -> Program:
    """Read all declarations; bodies of functions are not looked into. Raises ProbeFileError."""
    tree = source.tree()
    program = Program()
    for index, statement in enumerate(tree.body):
        if index == 0 and (text := _docstring(statement)) is not None:
            program.about = _about(text)
        else:
            _read(statement, program, source)
    if not program.functions:
        raise source.error(tree, "there is no probe in it: write a function under @probe(pos=…)")
    if not program.maps:
        raise source.error(tree, "it keeps nothing: add a class under @Map(level=…) and save in it")
    return program


def _read(statement: ast.stmt, program: Program, source: Source) -> None:
    match statement:
        case ast.ImportFrom(module=module, level=0) if module in _IMPORTABLE:
            _refuse_renaming(statement, source)
        case ast.Import() | ast.ImportFrom():
            raise source.error(statement, "a probe imports nothing but names 'from tui_probe.dsl import …'")
        case ast.ClassDef():
            declared = read_map(statement, source)
            program.maps[_new(declared.name, statement, program, source)] = declared
        case ast.FunctionDef():
            function = read_probe_function(statement, source)
            program.functions[_new(function.name, statement, program, source)] = function
        case ast.Assign(targets=[ast.Name(id="CALLBACK")], value=value):
            program.callback = _callback(value, source)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            number = constant(value, program.constants, source)
            program.constants[_new(name, statement, program, source)] = number
        case ast.AnnAssign(target=ast.Name(id=name)):
            _register(statement, name, program, source)
        case _:
            raise source.error(statement, f"'{words(statement)}' has no place here: {_ALLOWED}")


def _refuse_renaming(statement: ast.ImportFrom, source: Source) -> None:
    for alias in statement.names:
        if alias.asname not in (None, alias.name):
            raise source.error(statement, f"{alias.name} keeps its name in a probe: leave out 'as {alias.asname}'")


def _new(name: str, node: ast.AST, program: Program, source: Source) -> str:
    """The name, if it may be declared."""
    if not name.isascii():
        raise source.error(node, f"{name!a} has letters that PTX does not know: use A-Z, a-z, 0-9 and _")
    if name in RESERVED:
        raise source.error(node, f"{name} is a word of the language: choose another name")
    if any(name in kind for kind in (program.maps, program.registers, program.constants, program.functions)):
        raise source.error(node, f"{name} is declared twice: choose another name")
    return name


def _register(statement: ast.AnnAssign, name: str, program: Program, source: Source) -> None:
    kind = statement.annotation
    if not isinstance(kind, ast.Name) or kind.id not in TYPES:
        raise source.error(statement, f"{name} must be u64 or u32, not {words(kind)}")
    if statement.value is None:
        raise source.error(statement, f"{name} needs a first value: write '{name}: {kind.id} = 0'")
    bits = TYPES[kind.id]
    initial = constant(statement.value, program.constants, source) % (1 << bits)
    program.registers[_new(name, statement, program, source)] = DeclaredRegister(name, bits, initial)


def _callback(value: ast.expr, source: Source) -> str:
    match value:
        case ast.Constant(value=str(text)) if text and text.isprintable():
            return text
    raise source.error(value, 'CALLBACK names the analysis: write CALLBACK = "NAME"')


def _docstring(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return None


def _about(text: str) -> dict[str, str]:
    """The title and the lines ``Measures: …``, ``Unit: …``, ``Cost: …``, ``Checked: …`` of the module's docstring."""
    lines = [line.strip() for line in text.encode("utf-8", "replace").decode().strip().splitlines()]
    about = {"title": lines[0].rstrip(".")} if lines else {}
    for line in lines[1:]:
        key, colon, rest = line.partition(":")
        if colon and key.lower() in _ABOUT:
            about[key.lower()] = rest.strip()
    return about
