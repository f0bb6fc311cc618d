"""Compile a kernel of a module: its parameters and limits, and its program, basic blocks with the called functions.

A basic block is straight code that all threads of a group execute, up to a branch or label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.errors import PtxError
from tui_probe.ptx.tree import Instruction, Label, Register, Scope, inserted_lines
from tui_probe.simgpu.executor.barrier_instructions import BarrierArrival
from tui_probe.simgpu.executor.binding import (
    BoundItem,
    BoundStep,
    LabelMark,
    NamedInstruction,
    bind_function,
    common_types,
)
from tui_probe.simgpu.executor.calls import called_function
from tui_probe.simgpu.executor.memory import FUNCTION_WINDOW
from tui_probe.simgpu.executor.operands import Binder
from tui_probe.simgpu.executor.program import (
    BasicBlock,
    Branch,
    Control,
    FallThrough,
    FunctionCode,
    FunctionEnd,
    IndexedBranch,
    Program,
    compute_liveness,
    min_exit_cycles,
)
from tui_probe.simgpu.executor.scalars import UnsupportedFormError
from tui_probe.simgpu.executor.scope import (
    BytesName,
    FunctionName,
    FunctionScope,
    LabelName,
    Layout,
    Names,
    RegisterName,
    aliases,
    module_names,
    natural_align,
    parameter_offsets,
)
from tui_probe.simgpu.executor.special import SPECIAL_REGISTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.ptx.tree import Function, Module, Statement


@dataclass(slots=True)
class _FunctionUnit:
    """A function on its way into the program."""

    function: Function
    items: list[LabelMark | NamedInstruction]
    code: FunctionCode
    formals: list[BytesName | RegisterName]
    results: list[BytesName | RegisterName]
    bound_items: list[BoundItem] = field(default_factory=list)


def compile_program(entry: Function, layout: Layout, names: Names) -> Program:
    """Return the program of ``entry``, a kernel of the module with ``names``."""
    units = _reachable_functions(entry, layout, names)
    binder = Binder(layout, common_types(item for unit in units for item in unit.items))
    for unit in units:
        unit.bound_items = bind_function(unit.items, unit.code, binder)
        unit.code.formals = tuple(binder.argument_target(entity) for entity in unit.formals)
        unit.code.results = tuple(binder.result_source(entity) for entity in unit.results)
    results = [frozenset(entity.index for entity in unit.results) for unit in units]
    blocks, entries = _split_blocks(
        [(unit.bound_items, registers) for unit, registers in zip(units, results, strict=True)]
    )
    compute_liveness(blocks)
    functions = {}
    for unit, first_block in zip(units, entries, strict=True):
        unit.code.entry = first_block
        formal_indices = {entity.index for entity in unit.formals}
        unit.code.undefined = tuple(
            (index, binder.initial_value(index))
            for index in blocks[first_block].live_registers
            if index not in formal_indices
        )
        functions[unit.function.name] = unit.code
    return Program(
        blocks=blocks,
        functions=functions,
        addresses={address: name for name, address in layout.functions.items() if name in functions},
        reads_placement=any(_reads_placement(item) for unit in units for item in unit.items),
        min_cycles=min_exit_cycles(blocks, entries[0]),
    )


def _reachable_functions(entry: Function, layout: Layout, names: Names) -> list[_FunctionUnit]:
    units = [_function_unit(entry, layout, names)]
    known_names = {entry.name}
    for unit in units:
        for function in _callees(unit, layout, names):
            if function.name not in known_names:
                known_names.add(function.name)
                units.append(_function_unit(function, layout, names))
    return units


def _function_unit(function: Function, layout: Layout, names: Names) -> _FunctionUnit:
    scope = FunctionScope(layout, names)
    code = FunctionCode()
    formals: list[BytesName | RegisterName] = []
    results: list[BytesName | RegisterName] = []
    if function.kind == "entry":
        scope.declare_kernel_parameters(function.parameters)
    else:
        formals = [entity for variable in function.parameters for entity in scope.declare_formal(variable)]
        results = [entity for variable in function.returns for entity in scope.declare_formal(variable)]
    items = list(_flatten_scopes(function.body or (), scope, scope.names))
    code.local_bytes = scope.local_bytes
    return _FunctionUnit(function, items, code, formals, results)


def _flatten_scopes(
    body: Iterable[Statement], scope: FunctionScope, names: Names
) -> Iterator[LabelMark | NamedInstruction]:
    body = list(body)
    scope.declare_body(body, names)
    for statement in body:
        if isinstance(statement, Scope):
            yield from _flatten_scopes(statement.body, scope, Names(names))
        elif isinstance(statement, Label):
            label = names.find(statement.name)
            if isinstance(label, LabelName):
                yield LabelMark(label.key)
        elif isinstance(statement, Instruction):
            yield NamedInstruction(statement, names)


def _callees(unit: _FunctionUnit, layout: Layout, names: Names) -> Iterator[Function]:
    """The functions with a body that ``unit`` may call."""
    binder = Binder(layout)
    for item in unit.items:
        if isinstance(item, LabelMark) or item.instruction.opcode != "call":
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


def _reads_placement(item: LabelMark | NamedInstruction) -> bool:
    if isinstance(item, LabelMark):
        return False
    names = (str(operand) for operand in item.instruction.operands if isinstance(operand, Register))
    return any(name in SPECIAL_REGISTERS and SPECIAL_REGISTERS[name].is_placed for name in names)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter: where it is in the buffer of parameters, in bytes."""

    offset: int
    size: int
    align: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel. ``local_bytes`` is per thread; ``max_threads`` per block, 0 if the PTX sets no limit.

    ``cluster`` are the blocks of a cluster that the PTX asks for, in x, y, z; all 0 if it asks for none.
    """

    name: str
    parameters: tuple[Parameter, ...]
    static_shared_bytes: int
    local_bytes: int
    max_threads: int
    program: Program
    layout: Layout
    cluster: tuple[int, int, int] = (0, 0, 0)

    @property
    def parameter_bytes(self) -> int:
        """Size of the buffer of parameters."""
        return max((parameter.offset + parameter.size for parameter in self.parameters), default=0)


def compile_kernel(module: Module, entry: str) -> Kernel:
    """Compile the kernel ``entry``. Raises PtxError if the module has none of this name."""
    function = next((kernel for kernel in module.entries() if kernel.name == entry), None)
    if function is None or function.body is None:
        kernel_names = ", ".join(kernel.name for kernel in module.entries()) or "none"
        raise PtxError(f"no kernel {entry} in the module; its kernels: {kernel_names}")
    layout = Layout(functions=function_addresses(module))
    program = compile_program(function, layout, module_names(module))
    inserted = inserted_lines(module.source)
    for block in program.blocks:
        block.orders_accesses = block.line not in inserted
        block.own_line = next((line for line in block.lines if line not in inserted), 0)
    parameters = tuple(
        Parameter(offset, variable.size_bytes, max(variable.align, natural_align(variable)))
        for variable, offset in parameter_offsets(function.parameters)
    )
    # Each function once: what recursion needs on top is made room for when it happens.
    local_bytes = sum(-(-code.local_bytes // 16) * 16 for code in program.functions.values())
    threads, cluster = _max_threads(function), _cluster_shape(function)
    return Kernel(entry, parameters, layout.shared_bytes, local_bytes, threads, program, layout, cluster)


def _cluster_shape(function: Function) -> tuple[int, int, int]:
    text = function.attributes.get("reqnctapercluster")
    if text is None:
        return 0, 0, 0
    x, y, z = ([int(number) for number in re.findall(r"\d+", text)] + [1, 1])[:3]
    return x, y, z


def _max_threads(function: Function) -> int:
    for name in ("reqntid", "maxntid"):
        text = function.attributes.get(name)
        if text is not None:
            return int(np.prod([int(number) for number in re.findall(r"\d+", text.replace(name, ""))]))
    return 0


def function_addresses(module: Module) -> dict[str, int]:
    """The address by which a pointer names each function of the module."""
    names = dict.fromkeys(function.name for function in module.functions())
    addresses = {name: FUNCTION_WINDOW + 16 * (number + 1) for number, name in enumerate(names)}
    return addresses | {name: addresses[target] for name, target in aliases(module).items() if target in addresses}


@dataclass(slots=True)
class _BlockDraft:
    """A basic block whose branch targets are not known yet."""

    steps: list[BoundStep] = field(default_factory=list)
    control: Control = field(default_factory=FallThrough)
    results: frozenset[int] = frozenset()


def _split_blocks(
    functions: Sequence[tuple[Sequence[BoundItem], frozenset[int]]],
) -> tuple[list[BasicBlock], list[int]]:
    """Return the basic blocks of all functions, and the index of each function's first block.

    ``functions`` are parts, and the registers of the results, which live until the function returns.
    """
    drafts: list[_BlockDraft] = []
    labels: dict[int, int] = {}
    entries = []
    for parts, results in functions:
        entries.append(len(drafts))
        _split_at_controls(parts, drafts, labels)
        for draft in drafts[entries[-1] :]:
            draft.results = results
    may_poll = [any(step.effects.polls for step in draft.steps) for draft in drafts]
    return [_basic_block(index, draft, labels, may_poll) for index, draft in enumerate(drafts)], entries


def _split_at_controls(parts: Sequence[BoundItem], drafts: list[_BlockDraft], labels: dict[int, int]) -> None:
    """Append the blocks of one function to ``drafts``."""
    draft = _BlockDraft()
    drafts.append(draft)
    for item in parts:
        if isinstance(item, LabelMark):
            if draft.steps:
                draft = _BlockDraft()
                drafts.append(draft)
            labels[item.key] = len(drafts) - 1
            continue
        starts_block = item.effects.starts_block or item.effects.members is not None
        if starts_block and draft.steps:
            draft = _BlockDraft()
            drafts.append(draft)
        draft.steps.append(item)
        if item.control is not None:
            draft.control = item.control
            draft = _BlockDraft()
            drafts.append(draft)
    # What falls off the end of a function returns; nothing is after the last `ret`.
    draft.control = FunctionEnd(returns=True)


def _basic_block(index: int, draft: _BlockDraft, labels: dict[int, int], may_poll: Sequence[bool]) -> BasicBlock:
    source_registers: set[int] = set()
    target_registers: set[int] = set()
    for step in draft.steps:
        source_registers |= step.effects.source_registers - target_registers
        target_registers |= step.effects.target_registers
    if isinstance(draft.control, FunctionEnd) and draft.control.returns:
        source_registers |= draft.results - target_registers
    polls = _loop_polls(index, draft.control, labels, may_poll)
    return BasicBlock(
        line=draft.steps[0].line if draft.steps else 0,
        operations=tuple(step.operation for step in draft.steps if step.operation is not None),
        cycles=sum(step.cycles for step in draft.steps),
        length=sum(step.length for step in draft.steps),
        finish=draft.control.finish(labels, index + 1, polls),
        members=draft.steps[0].effects.members if draft.steps else None,
        may_end=draft.control.may_end,
        meets_block=isinstance(draft.control, BarrierArrival) and draft.control.is_of_block,
        lines=tuple(step.line for step in draft.steps if step.operation is not None),
        successors=tuple(draft.control.successors(labels, index + 1)),
        source_registers=frozenset(source_registers),
        target_registers=frozenset(target_registers),
    )


def _loop_polls(index: int, control: Control, labels: dict[int, int], may_poll: Sequence[bool]) -> bool:
    """Return True if ``control`` jumps back over an instruction that may poll the progress of another thread."""
    if isinstance(control, Branch):
        first_block = labels[control.label]
    elif isinstance(control, IndexedBranch):
        first_block = min(labels[label] for label in control.labels)
    else:
        return False
    return any(may_poll[first_block : index + 1])
