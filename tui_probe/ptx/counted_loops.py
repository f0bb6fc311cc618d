"""Loops that no count ends, in which a thread may stay.

A count ends a loop if each iteration changes a counter in one direction and compares it with a fixed bound there. The
step is a number, or made of sizes of blocks and grids: a parameter may be 0. A counter that must meet its bound exactly
steps by 1, or begins at a whole number of steps from the bound. One that is divided again and again becomes 0.

A definition is an instruction that writes a register. A value is invariant if no iteration changes it. This loop is
counted, if ``%r2`` is invariant::

    $L: add.s32 %r1, %r1, 4;
        setp.lt.s32 %p1, %r1, %r2;
        @%p1 bra $L;
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.ptx.control_flow import Flow, loop_heads, natural_loops
from tui_probe.ptx.instruction_facts import class_of
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Immediate, Instruction, Memory, Register, Symbol
from tui_probe.ptx.waiting import operand_registers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.ptx.tree import Function, Operand

_COPIES: Final = frozenset({"mov", "cvt", "cvta", "selp", "slct", "bra"})
_CLOCKS: Final = ("%clock", "%globaltimer")
_STEP_SOURCES: Final = {"mov": (1,), "add": (1, 2), "sub": (1,), "shr": (1,), "div": (1,), "mad": (3,)}
"""Indices of the operands that may hold the counter before the step, by opcode: in ``sub.s32 %r1, %r1, 1`` only the
first source (``1 - %r1`` is not a step), in ``mad.lo.s32 %r1, %r2, %r3, %r1`` only the addend.
"""
_INTEGERS: Final = frozenset({f"{sign}{bits}" for sign in "sub" for bits in (16, 32, 64)})
_INVERSE: Final = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_MIRRORED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_GRID_SIZES: Final = frozenset({"%ntid", "%nctaid", "%cluster_nctaid", "%cluster_nctarank", "%nclusterid"})
_KEEP_POSITIVE: Final = frozenset({"mov", "cvt", "add", "mul", "mad", "shl"})
_MIN_DIVISORS: Final = {"shr": 1, "div": 2}
"""Operands from which on an instruction divides by two or more: the bits of a shift, a divisor."""
_MAX_DEPTH: Final = 8
"""Operators of a condition, or of a sum of sizes, that are followed."""
_MAX_CHAIN: Final = 64
"""Instructions by which an iteration may change a counter."""
_MAX_RESIDUES: Final = 256
"""Registers that are followed to find a residue."""


def unbounded_loop_heads(function: Function) -> list[Instruction]:
    """Return the first instruction of each loop that no count ends, in source order."""
    flow = Flow.from_function(function)
    loops = natural_loops([flow.successors(index) for index in range(len(flow.blocks))])
    numbers = {id(block[0]): index for index, block in enumerate(flow.blocks)}
    heads = [numbers[id(first)] for first in loop_heads(function, flow)]
    values = _Values(function, flow)
    return [flow.blocks[head][0] for head in heads if not _CountedLoop(values, loops, head).is_bounded()]


def counted_lines(function: Function) -> set[int]:
    """Return the lines of loops that counts end, without those in a loop that no count ends."""
    flow = Flow.from_function(function)
    loops = natural_loops([flow.successors(index) for index in range(len(flow.blocks))])
    unbounded = {id(first) for first in unbounded_loop_heads(function)}
    lines: dict[bool, set[int]] = {False: set(), True: set()}
    for head, blocks in loops.items():
        loop_lines = {instruction.span.line for index in blocks for instruction in flow.blocks[index]}
        lines[id(flow.blocks[head][0]) in unbounded] |= loop_lines
    return lines[False] - lines[True]


class _Step(NamedTuple):
    """Change of a counter by an iteration: it adds ``number``, or more than that if the step is not exact."""

    number: int
    is_exact: bool

    @property
    def increases(self) -> bool:
        return self.number > 0 or (self.number == 0 and not self.is_exact)

    @property
    def decreases(self) -> bool:
        return self.is_exact and self.number < 0


@dataclass(frozen=True, slots=True)
class _Definition:
    """An instruction that writes a register, and the index of its block."""

    instruction: Instruction
    block: int


class _Values:
    """The instructions that write each register of a function, and facts that follow from all of them."""

    def __init__(self, function: Function, flow: Flow) -> None:
        self.flow = flow
        self.parameters = {parameter.name for parameter in function.parameters}
        self.definitions: dict[str, list[_Definition]] = {}
        for index, block in enumerate(flow.blocks):
            for instruction in block:
                for name in operand_registers(instruction.operands[:1]):
                    self.definitions.setdefault(name, []).append(_Definition(instruction, index))

    def writers_of(self, operand: Operand) -> list[Instruction]:
        """Return the instructions that write an operand."""
        return [definition.instruction for definition in self.definitions.get(getattr(operand, "name", ""), [])]

    def number(self, operand: Operand) -> int | None:
        """Return the value of an operand that has only one, if it is known."""
        if isinstance(operand, Immediate):
            return parse_integer(operand.text)
        definitions = self.writers_of(operand)
        if (
            len(definitions) != 1
            or definitions[0].opcode != "mov"
            or not isinstance(definitions[0].operands[1], Immediate)
        ):
            return None
        return parse_integer(definitions[0].operands[1].text)

    def is_positive(self, operand: Operand, depth: int = 0) -> bool:
        """Return whether an operand is a positive number, a size of the grid, or a sum or product of these."""
        if isinstance(operand, Immediate):
            return operand.text == "WARP_SZ" or (parse_integer(operand.text) or 0) > 0
        definitions = self.writers_of(operand)
        if not isinstance(operand, Register) or depth > _MAX_DEPTH or not definitions:
            return isinstance(operand, Register) and operand.name in _GRID_SIZES
        return all(
            definition.opcode in _KEEP_POSITIVE
            and all(self.is_positive(operand, depth + 1) for operand in definition.operands[1:])
            for definition in definitions
        )

    def may_be_quotient_by_zero(self, operand: Operand) -> bool:
        """Return whether an operand may come from a division by 0: compilers divide to count iterations."""
        visited: set[str] = set()
        pending = [operand]
        while pending:
            name = getattr(pending.pop(), "name", "")
            definitions = [] if name in visited else self.definitions.get(name, [])
            visited.add(name)
            for instruction in (definition.instruction for definition in definitions):
                if instruction.opcode in ("div", "rem") and not self.is_positive(instruction.operands[2]):
                    return True
                pending += instruction.operands[1:]
        return False

    def is_congruent(self, operand: Operand, residue: int, modulus: int) -> bool:
        """Return whether an operand is always ``residue`` plus a multiple of ``modulus``."""
        visited: set[tuple[str, int]] = set()
        pending = [(operand, residue % modulus)]
        while pending:
            source, remainder = pending.pop()
            number = parse_integer(source.text) if isinstance(source, Immediate) else None
            if number is not None and (number - remainder) % modulus == 0:
                continue
            if not isinstance(source, Register) or not self.writers_of(source) or len(visited) > _MAX_RESIDUES:
                return False
            if (source.name, remainder) in visited:
                continue
            visited.add((source.name, remainder))
            for definition in self.definitions[source.name]:
                sources = self._congruent_sources(definition, remainder, modulus)
                if sources is None:
                    return False
                pending += [(operand, other % modulus) for operand, other in sources]
        return True

    def _congruent_sources(
        self, definition: _Definition, residue: int, modulus: int
    ) -> list[tuple[Operand, int]] | None:
        """Return the operands and residues that make the result congruent to ``residue``; None if they are unknown."""
        is_power = modulus & (modulus - 1) == 0
        match definition.instruction.opcode, definition.instruction.operands[1:]:
            case "mov" | "cvt", (source,) if is_power and {*definition.instruction.modifiers} <= _INTEGERS:
                return [(source, residue)]
            case "add" | "sub" as opcode, (source, change) if (number := self.number(change)) is not None:
                return [(source, residue - number if opcode == "add" else residue + number)]
            case "add", (first, second) if residue == 0:
                return [(first, 0), (second, 0)]
            case "sub", (first, second) if is_power:
                dividends = [
                    (operand, first, -number) for operand, number in self._dividends(second, definition, modulus)
                ]
                dividends += [
                    (operand, second, number) for operand, number in self._dividends(first, definition, modulus)
                ]
                return [] if any(a == b and (number - residue) % modulus == 0 for a, b, number in dividends) else None
            case "and", sources if residue == 0 and is_power:
                return [] if any((self.number(operand) or 1) % modulus == 0 for operand in sources) else None
        return None

    def _dividends(self, operand: Operand, reader: _Definition, modulus: int) -> list[tuple[Operand, int]]:
        """Return pairs of a register and an addend. Their sum, modulo ``modulus``, is the reader's operand.

        For ``%r2`` in the following, that is ``(%r1, 0)``; where ``%r1`` is defined by ``add.s32 %r1, %r0, 5``, also
        ``(%r0, 5)``. The difference is a multiple of 4, by which an unrolled loop is counted::

            and.b32 %r2, %r1, 3;
            sub.s32 %r3, %r1, %r2;

        Other definitions of the operand, as in the loop for the remainder, must not reach the reader.
        """
        definitions = self.definitions.get(getattr(operand, "name", ""), [])
        remainders = [definition for definition in definitions if definition.instruction.opcode == "and"]
        if len(remainders) != 1 or any(
            definition is not remainders[0] and self._reaches_without(definition, reader, remainders[0])
            for definition in definitions
        ):
            return []
        source, mask = remainders[0].instruction.operands[1:]
        if ((self.number(mask) or 0) + 1) % modulus or len(self.writers_of(source)) != 1:
            return []
        (definition,) = self.writers_of(source)
        addend = self.number(definition.operands[2]) if definition.opcode == "add" else None
        return [(source, 0)] + ([] if addend is None else [(definition.operands[1], addend)])

    def _reaches_without(self, definition: _Definition, reader: _Definition, barrier: _Definition) -> bool:
        """Return whether one instruction may run after another with no third between them."""
        visited, pending = set[int](), [definition.block]
        while pending:
            successors = {*self.flow.successors(pending.pop())} - {barrier.block} - visited
            pending += successors
            visited |= successors
        return reader.block in visited or definition.block == reader.block


class _CountedLoop:
    """Looks for a counter that ends a loop: each iteration changes it in one direction, and compares it with a bound
    that lies there.
    """

    def __init__(self, values: _Values, loops: Mapping[int, set[int]], head: int) -> None:
        self._values = values
        self._flow = values.flow
        self._head = head
        self._loop_blocks = loops.get(head, set())  # none of a loop with several entries
        self._inner_blocks = {block for inner_head in self._loop_blocks - {head} for block in loops.get(inner_head, ())}
        self._invariant: dict[str, bool] = {}

    def is_bounded(self) -> bool:
        """Return whether a counter ends the loop."""
        return any(self._is_in_each_iteration({index}) and self._is_left_at(index) for index in self._loop_blocks)

    def _is_in_each_iteration(self, blocks: set[int]) -> bool:
        """Return whether each iteration runs one of these blocks."""
        if self._head in blocks:
            return True
        visited, pending = {self._head}, [self._head]
        while pending:
            successors = set(self._flow.successors(pending.pop())) & self._loop_blocks - blocks
            if self._head in successors:
                return False
            pending += successors - visited
            visited |= successors
        return True

    def _is_left_at(self, index: int) -> bool:
        """Return whether a counter makes the loop end behind a block."""
        branch = self._flow.blocks[index][-1]
        if branch.predicate is None or branch.opcode not in ("bra", "ret", "exit"):
            return False
        predicate, branch_value = branch.predicate.name, not branch.predicate_negated
        leaves_by_branch = not self._loop_blocks & {*self._flow.jumps[index]}
        leaves_by_fall = index + 1 not in self._loop_blocks
        return (leaves_by_branch and self._predicate_becomes(predicate, branch_value)) or (
            leaves_by_fall and self._predicate_becomes(predicate, not branch_value)
        )

    def _predicate_becomes(self, predicate: str, value: bool, depth: int = 0) -> bool:
        """Return whether a counter gives a predicate this value in the end."""
        definitions = self._loop_definitions(predicate)
        if len(definitions) != 1 or depth > _MAX_DEPTH or not self._is_in_each_iteration({definitions[0].block}):
            return False
        instruction = definitions[0].instruction
        names = [*operand_registers(instruction.operands[1:])]
        match instruction.opcode, instruction.modifiers, instruction.operands:
            case ("and" | "or") as opcode, _, _ if opcode == ("or" if value else "and"):
                return any(self._predicate_becomes(name, value, depth + 1) for name in names)
            case "not", _, _:
                return self._predicate_becomes(names[0], not value, depth + 1)
            case "setp", (relation, kind), (Register(), left, right) if relation in _INVERSE:
                relation = _INVERSE[relation] if value else relation
                return self._counter_passes(left, relation, right, kind) or self._counter_passes(
                    right, _MIRRORED.get(relation, relation), left, kind
                )
        return False

    def _counter_passes(self, counter: Operand, relation: str, bound: Operand, kind: str) -> bool:
        """Return whether a counter that has a relation to a bound does not keep it."""
        if not isinstance(counter, Register) or not self._is_invariant(bound) or kind not in _INTEGERS:
            return False
        number = self._values.number(bound)
        if number is not None and number >= 0 and (relation == "gt" or (relation, number) == ("ne", 0)):
            chains = self._chains(counter.name)
            if chains and all(self._divides(chain, signed=relation == "gt") for chain in chains):
                return True
        chains = self._chains(counter.name) or self._source_chains(counter.name, relation)
        if relation == "ne":
            return len(chains) == 1 and self._counter_meets(counter, bound, chains[0])
        steps = [self._step(chain) for chain in chains]
        if not steps or kind.endswith("16"):
            return False
        if relation in ("lt", "le"):
            return all(step is not None and step.increases for step in steps)
        is_possible = relation == "gt" or (relation == "ge" and (kind.startswith("s") or number != 0))
        return is_possible and all(step is not None and step.decreases for step in steps)

    def _counter_meets(self, counter: Operand, bound: Operand, chain: Sequence[_Definition]) -> bool:
        """Return whether a counter has exactly the value of a bound in the end."""
        step = self._step(chain)
        if (
            step is None
            or not step.is_exact
            or not step.number
            or any(definition.block in self._inner_blocks for definition in chain)
        ):
            return False
        if self._values.may_be_quotient_by_zero(counter) or self._values.may_be_quotient_by_zero(bound):
            return False
        number, modulus = self._values.number(bound), abs(step.number)
        return modulus == 1 or (
            self._values.is_congruent(counter, number or 0, modulus)
            and (number is not None or self._values.is_congruent(bound, 0, modulus))
        )

    def _loop_definitions(self, name: str) -> list[_Definition]:
        return [
            definition for definition in self._values.definitions.get(name, ()) if definition.block in self._loop_blocks
        ]

    def _chains(self, name: str) -> list[list[_Definition]]:
        """Return the chains of definitions by which an iteration computes a register from its previous value, each from
        its last instruction; none if an iteration may leave it unchanged, or computes it from something else.
        """
        definitions = self._loop_definitions(name)
        if not self._is_in_each_iteration({definition.block for definition in definitions}):
            return []
        chains = [self._chain(definition, name) for definition in definitions]
        return chains if all(chains) else []

    def _chain(self, definition: _Definition, name: str) -> list[_Definition]:
        chain = [definition]
        while (source := self._source_of_step(chain[-1].instruction)) != name:
            sources = self._loop_definitions(source) if source is not None else []
            if len(sources) != 1 or len(chain) > _MAX_CHAIN:
                return []
            if sources[0].block != chain[-1].block and not self._is_in_each_iteration({sources[0].block}):
                return []
            chain += sources
        return chain

    def _source_chains(self, name: str, relation: str) -> list[list[_Definition]]:
        """Return the chains of the register that an instruction copies, or adds a fixed value to, to get this one; if a
        bound is met exactly, also of the register whose upper half it cuts off.
        """
        definitions = self._loop_definitions(name)
        if len(definitions) != 1 or not self._is_in_each_iteration({definitions[0].block}):
            return []
        instruction = definitions[0].instruction
        if relation == "ne" and (instruction.opcode, *instruction.modifiers) == ("cvt", "u32", "u64"):
            return self._chains(next(operand_registers(instruction.operands[1:]), ""))
        source = self._source_of_step(instruction) if instruction.opcode in ("add", "sub", "mov") else None
        return self._chains(source) if source is not None else []

    def _source_of_step(self, instruction: Instruction) -> str | None:
        """Return the register that an instruction copies or changes by what is invariant in the loop."""
        varying = [operand for operand in instruction.operands[1:] if not self._is_invariant(operand)]
        places = _STEP_SOURCES.get(instruction.opcode, ())
        is_plain = instruction.predicate is None and instruction.modifiers[:-1] in ((), ("lo",), ("wide",))
        if len(varying) != 1 or not is_plain or instruction.modifiers[-1:][0] not in _INTEGERS:
            return None
        varying_operand = varying[0]
        is_changed = any(instruction.operands[place : place + 1] == (varying_operand,) for place in places)
        return varying_operand.name if is_changed and isinstance(varying_operand, Register) else None

    def _is_invariant(self, operand: Operand) -> bool:
        """Return whether an operand has the same value in all iterations."""
        match operand:
            case Immediate() | Symbol():
                return True
            case Memory(base=Symbol(name=name)):
                return name in self._values.parameters
            case Register(name=name):
                if name not in self._invariant:
                    self._invariant[name] = False  # while it is looked for, as for one that depends on itself
                    definitions = self._loop_definitions(name)
                    self._invariant[name] = not name.startswith(_CLOCKS) and (
                        not definitions
                        or (len(definitions) == 1 and self._computes_invariant(definitions[0].instruction))
                    )
                return self._invariant[name]
        return False

    def _computes_invariant(self, instruction: Instruction) -> bool:
        is_parameter = instruction.opcode == "ld" and "param" in instruction.modifiers
        is_computed = is_parameter or instruction.opcode in _COPIES or class_of(instruction) == "integer"
        return is_computed and instruction.predicate is None and all(map(self._is_invariant, instruction.operands[1:]))

    def _step(self, chain: Sequence[_Definition]) -> _Step | None:
        """Return the sum that the instructions of a chain add; None if it is unknown."""
        total, grows = 0, False
        for instruction in (definition.instruction for definition in chain):
            addends = [operand for operand in instruction.operands[1:] if self._is_invariant(operand)]
            numbers = [self._values.number(addend) for addend in addends]
            if instruction.opcode in ("add", "sub") and numbers[0] is not None:
                total += numbers[0] if instruction.opcode == "add" else -numbers[0]
            elif instruction.opcode in ("add", "mad") and all(map(self._values.is_positive, addends)):
                grows = True
            elif instruction.opcode != "mov":
                return None
        if grows and total < 0:
            return None
        return _Step(total, is_exact=not grows)

    def _divides(self, chain: Sequence[_Definition], *, signed: bool) -> bool:
        """Return whether the instructions of a chain copy, and divide by two or more: at last the result is 0.

        A ``signed`` shift makes -1 of a negative number.
        """
        divisions = [definition.instruction for definition in chain if definition.instruction.opcode != "mov"]
        return bool(divisions) and all(
            division.opcode in _MIN_DIVISORS
            and (self._values.number(division.operands[2]) or 0) >= _MIN_DIVISORS[division.opcode]
            and (signed or division.opcode == "div" or not division.modifiers[-1].startswith("s"))
            for division in divisions
        )
