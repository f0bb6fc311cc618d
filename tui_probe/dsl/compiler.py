"""Compile a probe in Python to the tables of a probe file (the dialect with ``[map.X]`` and ``[probe.Y]``)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tui_probe.dsl.emission import ProbeRegisters, SnippetRegisters
from tui_probe.dsl.program import ProbeSource
from tui_probe.dsl.reading import read_program
from tui_probe.dsl.statements import compile_function

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.dsl.program import DeclaredMap, DeclaredRegister, ProbeFunction, Program
    from tui_probe.dsl.statements import CompiledFunction


def compile_tables(text: str, path: str) -> dict[str, object]:
    """The tables ``callback``, ``about``, ``map`` and ``probe`` that the text of a Python probe stands for.

    ``path`` is for messages. The text is never run. Raises ProbeFileError with file, line, what is wrong and what
    to write instead.
    """
    source = ProbeSource(path, text)
    try:
        return _program_tables(source)
    except RecursionError as error:
        raise source.too_deep() from error


def _program_tables(source: ProbeSource) -> dict[str, object]:
    program = read_program(source)
    registers = ProbeRegisters()
    for declared in program.registers.values():
        registers.declare(declared.name, declared.bits)
    compiled = [compile_function(function, program, registers, source) for function in program.functions.values()]
    saved = frozenset[str]().union(*(function.saved for function in compiled))
    for unsaved in program.maps.values():
        if unsaved.name not in saved:
            raise source.error(unsaved.node, f"nothing is saved in map {unsaved.name}; write '{unsaved.name}.save(…)'")
    return {
        **({"callback": program.callback} if program.callback else {}),
        **({"about": program.about} if program.about else {}),
        "map": {own_map.name: _map_table(own_map) for own_map in program.maps.values()},
        "probe": {
            **_initial_values(program, compiled, registers),
            **{o.function.name: _point_table(o) for o in compiled},
        },
    }


def _map_table(declared: DeclaredMap) -> dict[str, object]:
    size = {} if declared.size is None else {"size": declared.size}
    reduce = {"reduce": declared.reduce} if declared.reduce else {}
    return {
        "level": declared.level,
        "type": declared.type,
        **size,
        "cap": declared.cap,
        **reduce,
        "regs": dict(declared.fields),
    }


def _point_table(compiled: CompiledFunction) -> dict[str, object]:
    function = compiled.function
    level = {"level": function.level} if function.level else {}
    when = "before" if function.before else "after"
    return {"position": function.position, **level, when: _snippet_text(compiled.lines)}


def _snippet_text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _initial_values(
    program: Program, compiled: list[CompiledFunction], registers: ProbeRegisters
) -> dict[str, dict[str, object]]:
    """The probe at the kernel's entry, before all others, that sets registers."""
    used = frozenset[str]().union(*(function.registers for function in compiled))
    entries = [function.function for function in compiled if function.function.is_entry]
    needed = [
        register
        for register in program.registers.values()
        if register.name in used and not _is_set_first(register, entries)
    ]
    if not needed:
        return {}
    names = SnippetRegisters(registers)
    lines = [
        f"mov.b{register.bits} {names.variable(register.name, register.bits)}, {register.initial};"
        for register in needed
    ]
    name = "initial_values"
    while name in program.functions:
        name += "_"
    return {name: {"position": "kernel", "before": _snippet_text([*names.declarations(), *lines])}}


def _is_set_first(register: DeclaredRegister, entries: list[ProbeFunction]) -> bool:
    """Return whether a probe at the entry sets a register in any case, before anything reads its first value."""
    for statement in (statement for entry in entries for statement in entry.node.body):
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == register.name]
        if isinstance(statement, ast.AugAssign) or any(isinstance(name.ctx, ast.Load) for name in names):
            if names:
                return False
        elif isinstance(statement, ast.Assign) and names:
            return True
    return False
