"""Names in a probe function: the meaning of each, and the width of locals."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from tui_probe.dsl.building import SPECIAL, ExpressionBuilder, Loop, read_loop
from tui_probe.dsl.expressions import MAX_U32, MAX_U64, Expression, Number, Variable, fits_32_bits
from tui_probe.dsl.program import HELPER_NAMES, ProbedOperands, ProbeSource, source_of
from tui_probe.dsl.reading import RESERVED_NAMES, TYPE_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.dsl.expressions import Bits
    from tui_probe.dsl.program import ProbeFunction, Program

_LARGEST_VALUES: Final[dict[Bits, int]] = {32: MAX_U32, 64: MAX_U64}


class FunctionScope:
    """The names of one function.

    ``assigned`` holds the locals that have a value on every way to the statement at hand, ``loops`` the loops around
    it. ``bits`` are the widths of locals: as declared, or else 32 if all that is assigned fits into them.
    """

    def __init__(self, function: ProbeFunction, program: Program, source: ProbeSource) -> None:
        self._program = program
        self._source = source
        self.operands = ProbedOperands(source, function.positions, function.before)
        self.builder = ExpressionBuilder(source, self._resolve)
        self.assigned: set[str] = set()
        self.loops: dict[str, Loop] = {}
        self.bits = self._declared(function.node)
        self._infer(function.node)

    def target(self, node: ast.expr) -> str:
        """The variable that an assignment sets. Raises ProbeFileError."""
        if not isinstance(node, ast.Name):
            raise self._source.error(node, f"'{source_of(node)}' cannot be assigned; assign one variable at a time")
        name = node.id
        if not name.isascii():
            raise self._source.error(node, f"{name!a} has letters that PTX does not allow; use A-Z, a-z, 0-9 and _")
        if name in self.loops:
            raise self._source.error(node, f"{name} is the variable of the loop; assign another variable")
        program = self._program
        if name in RESERVED_NAMES or name in program.constants or name in program.maps or name in program.functions:
            raise self._source.error(
                node, f"{name} is a name of the language, a constant, a map or a function; assign another variable"
            )
        return name

    def width(self, name: str) -> Bits:
        """The width of a register or local that is assigned."""
        register = self._program.registers.get(name)
        return register.bits if register else self.bits[name]

    def is_register(self, name: str) -> bool:
        """Return whether a variable keeps its value from one position to the next."""
        return name in self._program.registers

    def loop(self, node: ast.For) -> Loop:
        """The loop that a statement begins. Raises ProbeFileError."""
        loop = read_loop(node, self._program.constants, self._source)
        self.target(node.target)
        if self.is_register(loop.name) or loop.name in self.bits:
            raise self._source.error(node, f"{loop.name} is a variable already; count with another name")
        return loop

    def _resolve(self, node: ast.Name) -> Expression:
        name = node.id
        if name in HELPER_NAMES:
            return self.operands.part(node, as_it_is=False)
        if name in self._program.constants:
            return Number(self._program.constants[name])
        if (register := self._program.registers.get(name)) is not None:
            return Variable(name, register.bits, _LARGEST_VALUES[register.bits])
        if (loop := self.loops.get(name)) is not None:
            return Variable(name, loop.bits, loop.bound)
        if name in self.bits:
            return self._local(node)
        if name in SPECIAL:
            raise self._source.error(node, f"{name} is a function; write '{name}()'")
        raise self._source.error(
            node, f"{name} has no value here; assign it before, or declare '{name}: u64 = 0' above"
        )

    def _local(self, node: ast.Name) -> Variable:
        if node.id not in self.assigned:
            raise self._source.error(
                node, f"{node.id} may be unset at this line; give it a value before, such as {node.id} = 0"
            )
        return Variable(node.id, self.bits[node.id], _LARGEST_VALUES[self.bits[node.id]])

    def _declared(self, function: ast.FunctionDef) -> dict[str, Bits]:
        declared: dict[str, Bits] = {}
        for node in ast.walk(function):
            if not isinstance(node, ast.AnnAssign):
                continue
            name = self.target(node.target)
            if not isinstance(node.annotation, ast.Name) or node.annotation.id not in TYPE_BITS:
                raise self._source.error(node, f"{name} must be u64 or u32, not {source_of(node.annotation)}")
            if name in self._program.registers:
                raise self._source.error(node, f"{name} is a register of the probe; write '{name} = …' without a type")
            if declared.setdefault(name, TYPE_BITS[node.annotation.id]) != TYPE_BITS[node.annotation.id]:
                raise self._source.error(node, f"{name} is declared u64 and u32; give it one type")
        return declared

    def _infer(self, function: ast.FunctionDef) -> None:
        """Locals without a declared type are as wide as what is assigned to them: narrow until proved wide."""
        values = list(self._undeclared(function))
        for name, _ in values:
            self.bits[name] = 32
        self.assigned = set(self.bits)
        for node in ast.walk(function):
            if isinstance(node, ast.For):
                loop = read_loop(node, self._program.constants, self._source)
                self.loops[loop.name] = max(
                    loop, self.loops.get(loop.name, loop), key=lambda candidate: candidate.bound
                )
        changed = True
        while changed:
            changed = False
            for name, value in values:
                if self.bits[name] == 32 and not fits_32_bits(self.builder.build(value)):
                    self.bits[name] = 64
                    changed = True
        self.assigned, self.loops = set(), {}

    def _undeclared(self, function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[target], value=value):
                    pass
                case ast.AugAssign(target=target):
                    value = sum_of(node)
                case _:
                    continue
            name = self.target(target)
            if name not in self._program.registers and name not in self.bits:
                yield name, value


def sum_of(node: ast.AugAssign) -> ast.expr:
    """``x + value`` of ``x += value``."""
    if not isinstance(node.target, ast.Name):
        return node.value
    read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
    return ast.copy_location(ast.BinOp(read, node.op, node.value), node)
