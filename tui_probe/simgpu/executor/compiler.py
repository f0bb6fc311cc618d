"""From the body of a kernel, and of the functions that it calls, to a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.ptx.tree import Instruction, Label, Register, Scope
from tui_probe.simgpu.executor.binding import Mark, Part, Written, bind_function
from tui_probe.simgpu.executor.blocks import assemble
from tui_probe.simgpu.executor.calls import called_function
from tui_probe.simgpu.executor.forms import UnsupportedFormError
from tui_probe.simgpu.executor.operands import Binder
from tui_probe.simgpu.executor.program import FunctionCode, Program, compute_liveness, shortest_path
from tui_probe.simgpu.executor.scope import (
    BytesName,
    FunctionName,
    FunctionScope,
    LabelName,
    Layout,
    Names,
    RegisterName,
)
from tui_probe.simgpu.executor.special import SPECIAL_REGISTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.ptx.tree import Function, Statement


@dataclass(slots=True)
class _Unit:
    """A function on its way into the program."""

    function: Function
    items: list[Mark | Written]
    code: FunctionCode
    formals: list[BytesName | RegisterName]
    results: list[BytesName | RegisterName]
    parts: list[Part] = field(default_factory=list)


def compile_program(entry: Function, layout: Layout, names: Names) -> Program:
    """The program of ``entry``, a kernel of the module with ``names``."""
    units = _reachable(entry, layout, names)
    learning = Binder(layout)
    for unit in units:
        bind_function(unit.items, unit.code, learning)
    storage = learning.chosen_storage()
    binder = Binder(layout, storage)
    for unit in units:
        unit.parts = bind_function(unit.items, unit.code, binder)
        unit.code.formals = tuple(binder.formal(entity) for entity in unit.formals)
        unit.code.results = tuple(binder.result(entity) for entity in unit.results)
    blocks, entries = assemble([(unit.parts, frozenset(entity.index for entity in unit.results)) for unit in units])
    compute_liveness(blocks)
    functions = {}
    for unit, first_block in zip(units, entries, strict=True):
        unit.code.entry = first_block
        given = {entity.index for entity in unit.formals}
        unit.code.undefined = tuple(
            (index, binder.zero(index)) for index in blocks[first_block].live if index not in given
        )
        functions[unit.function.name] = unit.code
    return Program(
        blocks=blocks,
        functions=functions,
        addresses={address: name for name, address in layout.functions.items() if name in functions},
        reads_placement=any(_reads_placement(item) for unit in units for item in unit.items),
        shortest=shortest_path(blocks, entries[0]),
    )


def _reachable(entry: Function, layout: Layout, names: Names) -> list[_Unit]:
    units = [_open(entry, layout, names)]
    known = {entry.name}
    for unit in units:
        for function in _callees(unit, layout, names):
            if function.name not in known:
                known.add(function.name)
                units.append(_open(function, layout, names))
    return units


def _open(function: Function, layout: Layout, names: Names) -> _Unit:
    scope = FunctionScope(layout, names)
    code = FunctionCode()
    formals: list[BytesName | RegisterName] = []
    results: list[BytesName | RegisterName] = []
    if function.kind == "entry":
        scope.declare_kernel_parameters(function.parameters)
    else:
        formals = [entity for variable in function.parameters for entity in scope.declare_formal(variable)]
        results = [entity for variable in function.returns for entity in scope.declare_formal(variable)]
    items = list(_flattened(function.body or (), scope, scope.names))
    code.local_bytes = scope.local_bytes
    return _Unit(function, items, code, formals, results)


def _flattened(body: Iterable[Statement], scope: FunctionScope, names: Names) -> Iterator[Mark | Written]:
    body = list(body)
    scope.declare_all(body, names)
    for statement in body:
        if isinstance(statement, Scope):
            yield from _flattened(statement.body, scope, Names(names))
        elif isinstance(statement, Label):
            label = names.find(statement.name)
            if isinstance(label, LabelName):
                yield Mark(label.key)
        elif isinstance(statement, Instruction):
            yield Written(statement, names)


def _callees(unit: _Unit, layout: Layout, names: Names) -> Iterator[Function]:
    """The functions with a body that ``unit`` may call."""
    binder = Binder(layout)
    for item in unit.items:
        if isinstance(item, Mark) or item.instruction.opcode != "call":
            continue
        operands = item.instruction.operands[:2]
        if any(isinstance(operand, Register) for operand in operands):
            yield from _all_functions(layout, names)
        binder.begin(item.names, item.instruction.span.line)
        for operand in operands:
            try:
                yield called_function(operand, binder)
            except UnsupportedFormError:
                # Arguments, or a function without body, which matters only when it is called.
                continue


def _all_functions(layout: Layout, names: Names) -> Iterator[Function]:
    for name in layout.functions:
        entity = names.find(name)
        if isinstance(entity, FunctionName) and entity.function.body is not None and entity.function.kind == "func":
            yield entity.function


def _reads_placement(item: Mark | Written) -> bool:
    if isinstance(item, Mark):
        return False
    names = (str(operand) for operand in item.instruction.operands if isinstance(operand, Register))
    return any(name in SPECIAL_REGISTERS and SPECIAL_REGISTERS[name].is_placed for name in names)
