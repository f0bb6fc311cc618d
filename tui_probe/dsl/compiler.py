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
    """Return the tables ``callback``, ``about``, ``map`` and ``probe`` that the text of a Python probe stands for.

    ``path`` is for messages. The text is never run. Raises ProbeFileError with file, line, what is wrong and what
    to write instead.
    """
    source = ProbeSource(path, text)
    try:
        return _program_tables(source)
    except RecursionError as error:
        raise source.nesting_error() from error


def _program_tables(source: ProbeSource) -> dict[str, object]:
    program = read_program(source)
    registers = ProbeRegisters()
    for register in program.registers.values():
        registers.declare(register.name, register.bits)
    compiled_functions = [
        compile_function(function, program, registers, source) for function in program.functions.values()
    ]
    saved_maps = frozenset[str]().union(*(function.saved_maps for function in compiled_functions))
    for declared_map in program.maps.values():
        if declared_map.name not in saved_maps:
            raise source.error(
                declared_map.node, f"nothing is saved in map {declared_map.name}; write '{declared_map.name}.save(…)'"
            )
    return {
        **({"callback": program.callback} if program.callback else {}),
        **({"about": program.about_table} if program.about_table else {}),
        "map": {own_map.name: _map_table(own_map) for own_map in program.maps.values()},
        "probe": {
            **_initial_values(program, compiled_functions, registers),
            **{compiled.function.name: _point_table(compiled) for compiled in compiled_functions},
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
    side = "before" if function.runs_before else "after"
    return {"position": function.position, **level, side: _snippet_text(compiled.lines)}


def _snippet_text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _initial_values(
    program: Program, compiled: list[CompiledFunction], registers: ProbeRegisters
) -> dict[str, dict[str, object]]:
    """Return the probe at the kernel's entry, before all others, that sets registers."""
    used_registers = frozenset[str]().union(*(function.registers for function in compiled))
    entries = [function.function for function in compiled if function.function.is_entry]
    initial_registers = [
        register
        for register in program.registers.values()
        if register.name in used_registers and not _is_set_first(register, entries)
    ]
    if not initial_registers:
        return {}
    names = SnippetRegisters(registers)
    lines = [
        f"mov.b{register.bits} {names.variable(register.name, register.bits)}, {register.initial};"
        for register in initial_registers
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
