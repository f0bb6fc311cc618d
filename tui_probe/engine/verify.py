"""Verify that a probe writes only its own registers and maps.

A probe that could change what the kernel computes is refused before any kernel is touched.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.engine.snippet import (
    BLOCK_HELPER,
    ISSUED_HELPER,
    LAUNCH_HELPER,
    LINE_HELPER,
    SNIPPET_HELPERS,
    point_statements,
    points_without_effect,
)
from tui_probe.errors import ProbeFileError
from tui_probe.probe_model.positions import LOOP, PHASE
from tui_probe.probe_model.probe import (
    FIELD_BYTES,
    KEPT_FIELD,
    LONGEST_HELPER,
    WAIT_HELPER,
    Field,
    FileLocation,
    Level,
    Locate,
    Map,
    Probe,
    ProbePoint,
    Save,
    Snippet,
    SnippetCode,
)
from tui_probe.ptx.instruction_facts import TYPE_BITS
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import (
    Element,
    Immediate,
    Instruction,
    Memory,
    Negated,
    Operand,
    OperandList,
    Pair,
    Raw,
    Register,
    Sum,
    Symbol,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_RESIDENT_FIELDS: Final = [
    [("entered", "u32"), ("left", "u32")],
    [("launch", "u64"), ("block", "u32"), ("warp", "u32")],
]
"""Names and types of the fields of the first two resident maps, which the hook reads itself."""
SPECIAL_REGISTERS: Final = frozenset({
    "%tid", "%ntid", "%laneid", "%warpid", "%nwarpid", "%ctaid", "%nctaid", "%smid", "%nsmid", "%gridid",
    "%is_explicit_cluster", "%clusterid", "%nclusterid",
    "%cluster_ctaid", "%cluster_nctaid", "%cluster_ctarank", "%cluster_nctarank",
    "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt",
    "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi",
    "%total_smem_size", "%aggr_smem_size", "%dynamic_smem_size", "%current_graph_exec",
})  # fmt: skip

_VECTOR_REGISTERS: Final = frozenset(
    f"%{name}id" for name in ("t", "nt", "cta", "ncta", "cluster", "ncluster", "cluster_cta", "cluster_ncta")
)
MAX_ADDEND: Final = (1 << 16) - 1
"""The largest number that ADD takes; what is larger comes in a register."""

_MAP_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_CARRY_REASON: Final = (
    "uses the carry flag, which the kernel may have set for its next instruction; add 64-bit registers instead"
)
"""The carry flag is in no register (PTX ISA, Extended-Precision Integer Arithmetic)."""
_REFUSAL_REASONS: Final = {
    opcode: reason
    for opcodes, reason in (
        ("st atom red cp stmatrix sust sured multimem", "writes memory; use SAVE"),
        ("ret exit trap brkpt call brx", "leaves the probe; branch to a label of the snippet"),
        (
            "bar barrier mbarrier membar fence griddepcontrol nanosleep",
            "makes the kernel wait; remove this instruction from the snippet",
        ),
        (
            "ld ldu ldmatrix tex tld4 txq suld suq alloca",
            "reads the kernel's memory or parameters, which a probe cannot do; use ADDR, OUT, IN1, IN2 or IN3 instead",
        ),
        ("stacksave stackrestore", "changes the kernel's stack; remove this instruction from the snippet"),
        (
            "setmaxnreg wgmma tcgen05 discard prefetch prefetchu applypriority",
            "changes kernel state; remove this instruction from the snippet",
        ),
        ("addc subc madc", _CARRY_REASON),
    )
    for opcode in opcodes.split()
}
"""Opcodes that write memory, leave the snippet, wait for other threads, or read what a probe must not, with what to do
instead.
"""


_LANE_EXCHANGES: Final = frozenset({"elect", "match", "redux", "shfl", "vote"})
"""Instructions whose ``.sync`` form ends with a mask of lanes and waits until all these lanes arrive."""
_WAIT_VALUES: Final = frozenset({WAIT_HELPER, LONGEST_HELPER, "1"})


def verify_probe(probe: Probe) -> None:
    """Raise ProbeFileError, with file and line and what to write instead, if a probe is not safe or not sound."""
    _check_names(probe)
    for point in probe.points:
        _check_block_side(probe, point)
        if any(position.is_wait for position in point.positions):
            _check_wait(probe, point)
            continue
        for snippet in (point.before, point.after):
            if snippet is not None:
                _SnippetCheck(probe, point, snippet).run()
    saved_maps = {s.map for s in _statements(probe) if isinstance(s, Save)}
    for own_map in probe.maps:
        if own_map.name not in saved_maps:
            raise ProbeFileError(
                f"{probe.path}: nothing is saved in map {own_map.name}; add 'SAVE [ {own_map.name} ] …'"
            )
    _check_optional_maps(probe)
    if probe.is_resident:
        _check_resident(probe)
    if not probe.maps:
        raise ProbeFileError(f"{probe.path}: this probe records nothing; add a map and a SAVE")
    for point in points_without_effect(probe)[-1:]:  # the Python language puts one in front
        place = next((s.place for s in point_statements(point)), FileLocation(str(probe.path), 0))
        raise ProbeFileError(
            f"{place}: [{point.name}] has no effect on saved values; save a value that this snippet computes"
        )
    if any(point.lean for point in probe.points):
        verify_probe(probe.lean_form())


def _statements(probe: Probe) -> Iterator[SnippetCode | Locate | Save]:
    for point in probe.points:
        yield from point_statements(point)


def _check_block_side(probe: Probe, point: ProbePoint) -> None:
    """Refuse ``after`` at blocks: where a basic block ends, another begins, or the kernel."""
    if point.after is not None and any(position.is_block for position in point.positions):
        place = point.after.statements[0].place if point.after.statements else FileLocation(str(probe.path), 0)
        raise ProbeFileError(
            f"{place}: [{point.name}] is at 'block', 'loop' or 'phase', which support only 'before'; write 'before'"
        )


def _check_wait(probe: Probe, point: ProbePoint) -> None:
    """Refuse a point at waits that does more than count them: its code would make other waits longer."""
    statements = point.after.statements if point.after else ()
    match statements:
        case (Save(adds=True, values=values, map=name),) if point.before is None and set(values) <= _WAIT_VALUES:
            own_map = next((candidate for candidate in probe.maps if candidate.name == name), None)
            if own_map and own_map.level is Level.SITE and len(values) == len(own_map.fields):
                return
    place = statements[0].place if statements else FileLocation(str(probe.path), 0)
    raise ProbeFileError(
        f"{place}: [{point.name}] is at 'wait', which needs a map with level = 'site' and one snippet:"
        f" after = 'ADD [ MAP ] {{{WAIT_HELPER}, 1}};' ({LONGEST_HELPER} may follow)"
    )


def _check_optional_maps(probe: Probe) -> None:
    """Refuse points that save in an optional map and in another: kernels are also probed without optional maps."""
    for point in probe.points:
        if probe.saves_in_optional_map(point) and not all(probe.map_named(name).optional for name in point.saved_maps):
            raise ProbeFileError(
                f"{probe.path}: [{point.name}] saves in an optional map and in a map that is not optional; split it"
                " into two [probe] tables, one for each map"
            )


def _check_resident(probe: Probe) -> None:
    """Refuse resident maps without the fields that the hook itself reads: ``hook/src/records/resident.h``."""
    fields = [[(field.name, field.type) for field in own_map.fields] for own_map in probe.maps if own_map.resident]
    if fields[:2] != _RESIDENT_FIELDS:
        raise ProbeFileError(
            f"{probe.path}: the first resident map needs the u32 fields 'entered' and 'left'; the second resident map"
            " needs the u64 field 'launch' and the u32 fields 'block' and 'warp'"
        )


def _check_names(probe: Probe) -> None:
    for own_map in probe.maps:
        if not _MAP_NAME.fullmatch(own_map.name):
            raise ProbeFileError(f"{probe.path}: the map name {own_map.name!r} may contain only letters, digits and _")
    for name, kind in probe.registers.items():
        if name in SPECIAL_REGISTERS or name.partition(".")[0] in SPECIAL_REGISTERS:
            raise ProbeFileError(f"{probe.path}: {name} is a special register; declare another name")
        if kind not in TYPE_BITS and kind != "pred":
            raise ProbeFileError(f"{probe.path}: {name} is declared as .{kind}; declare a type such as .b32 or .pred")
        if name in SNIPPET_HELPERS:
            raise ProbeFileError(f"{probe.path}: {name} is reserved: it stands for an operand; declare another name")


def _refusal_reason(instruction: Instruction) -> str | None:
    """Return why no snippet may have the instruction, with any registers."""
    if "cc" in instruction.modifiers:
        return _CARRY_REASON
    match instruction:
        case Instruction(opcode=opcode, modifiers=modifiers, operands=(*_, Immediate())) if (
            opcode in _LANE_EXCHANGES and "sync" in modifiers
        ):
            return "names its lanes by a number and waits for those that took another branch; use activemask.b32"
    if (reason := _REFUSAL_REASONS.get(instruction.opcode)) is None and "aligned" in instruction.modifiers:
        return "needs all lanes of the warp, but some may have taken another branch; remove this instruction"
    return reason


class _SnippetCheck:
    """Checks one snippet, statement by statement."""

    def __init__(self, probe: Probe, point: ProbePoint, snippet: Snippet) -> None:
        self._probe = probe
        self._snippet = snippet
        self._is_at_kernel = any(position.is_kernel for position in point.positions)
        self._is_at_block = any(position.is_block or position.is_source for position in point.positions)
        self._is_at_source = any(position.is_source for position in point.positions)
        self._is_at_loop = any(position.opcode in (LOOP, PHASE) for position in point.positions)
        self._is_at_instruction = any(
            not (position.is_kernel or position.is_block or position.is_source) for position in point.positions
        )
        self._is_retried = any(position.retried for position in point.positions)
        self._located: Locate | None = None

    def run(self) -> None:
        for statement in self._snippet.statements:
            match statement:
                case SnippetCode(instruction=None):
                    self._check_label(statement)
                case SnippetCode(instruction=Instruction() as instruction):
                    self._check_instruction(instruction, statement)
                case Locate():
                    self._check_locate(statement)
                case Save():
                    self._check_save(statement)
        if self._located is not None:
            raise self._error(self._located.place, f"LOCATE [ {self._located.map} ] has no SAVE after it; add a SAVE")

    def _error(self, place: FileLocation, message: str) -> ProbeFileError:
        return ProbeFileError(f"{place}: {message}")

    def _check_label(self, label: SnippetCode) -> None:
        if self._located is not None:
            raise self._error(
                label.place, "a label may not be between LOCATE and SAVE; move the label before LOCATE or after SAVE"
            )

    def _check_locate(self, locate: Locate) -> None:
        self._map_named(locate.map, locate.place)
        if self._located is not None:
            raise self._error(
                locate.place,
                "the LOCATE before this LOCATE has no SAVE; write its SAVE between the two",
            )
        self._located = locate

    def _check_save(self, save: Save) -> None:
        own_map = self._map_named(save.map, save.place)
        if own_map.level is Level.SITE:
            self._check_site_record(save, own_map)
        if save.adds:
            self._check_addition(save, own_map)
        if self._located is not None and self._located.map != save.map:
            raise self._error(
                save.place, f"SAVE [ {save.map} ] follows LOCATE [ {self._located.map} ]; name the same map in both"
            )
        self._located = None
        if len(save.values) != len(own_map.fields):
            names = ", ".join(field.name for field in own_map.fields)
            word = "ADD" if save.adds else "SAVE"
            raise self._error(
                save.place,
                f"{word} takes a value for each field of map {own_map.name} ({names}); values given:"
                f" {len(save.values)}",
            )
        if not save.adds:
            for value, field in zip(save.values, own_map.fields, strict=True):
                if value != KEPT_FIELD:
                    self._check_saved_value(value, field, save.place)
                elif not own_map.resident:
                    raise self._error(
                        save.place, f"{KEPT_FIELD} is available only in resident maps; save another value"
                    )

    def _check_site_record(self, save: Save, own_map: Map) -> None:
        """Check a save in a map of sites, whose records have the sums of a whole launch per instruction or block."""
        if not save.adds:
            raise self._error(save.place, f"map {own_map.name} has level = 'site', which needs ADD instead of SAVE")
        if self._is_at_kernel:
            raise self._error(
                save.place,
                f"map {own_map.name} has level = 'site'; write ADD at instructions such as 'ld.global', or at 'block'",
            )
        for field in own_map.fields:
            if field.type != "u64":
                raise self._error(
                    save.place, f"map {own_map.name} has level = 'site'; make its field {field.name} a u64"
                )

    def _check_addition(self, save: Save, own_map: Map) -> None:
        """Check the values of ADD: whole numbers of the probe, no wider than the fields of the one record that it adds
        to.
        """
        if own_map.cap != 1:
            raise self._error(
                save.place, f"ADD [ {save.map} ] needs a map with cap = 1, because ADD changes one record"
            )
        if self._located is not None:
            raise self._error(save.place, f"ADD finds its record itself; remove LOCATE [ {self._located.map} ]")
        for value, field in zip(save.values, own_map.fields, strict=False):
            bits = TYPE_BITS.get(self._probe.registers.get(value, ""), 0)
            number = parse_integer(value)
            if number is not None and not 0 <= number <= MAX_ADDEND:
                raise self._error(save.place, f"ADD of {value}: a number must be from 0 to {MAX_ADDEND}")
            if number is None and (bits not in (32, 64) or self._probe.registers[value].startswith("f")):
                raise self._error(save.place, f"ADD of {value}: add a .b32 or .b64 register of this probe, or a number")
            if bits > FIELD_BYTES[field.type] * 8:
                raise self._error(save.place, f"ADD of {value}, a 64-bit register; make the field {field.name} a u64")

    def _check_saved_value(self, value: str, field: Field, place: FileLocation) -> None:
        register, _, component = value.partition(".")
        kind, number = self._probe.registers.get(value, ""), parse_integer(value)
        bits = FIELD_BYTES[field.type] * 8
        if value in SNIPPET_HELPERS:
            self._check_helper(value, place)
        elif kind == "pred":
            raise self._error(place, f"{value} is a predicate; use 'selp.u32' to turn it into a number first")
        elif kind.startswith("f") and TYPE_BITS[kind] > bits:
            raise self._error(place, f"{value} is .{kind}, which field {field.name} cannot hold; make the field a u64")
        elif register in SPECIAL_REGISTERS and not kind:
            self._check_special_register(register, component, place)
        elif number is not None and not -(1 << bits - 1) <= number < 1 << bits:
            raise self._error(
                place, f"{value} is more than the {bits} bits of field {field.name}; make the field a u64"
            )
        elif not kind and number is None:
            raise self._error(place, f"{value} is not a register of this probe; declare it, or save a number or helper")

    def _check_special_register(self, name: str, component: str, place: FileLocation) -> None:
        if name in _VECTOR_REGISTERS and component not in ("x", "y", "z", "w"):
            raise self._error(place, f"{name} is three numbers; write {name}.x, {name}.y or {name}.z")
        if name not in _VECTOR_REGISTERS and component:
            raise self._error(place, f"{name} is one number; write {name}, not {name}.{component}")

    def _map_named(self, name: str, place: FileLocation) -> Map:
        try:
            return self._probe.map_named(name)
        except KeyError:
            names = ", ".join(own_map.name for own_map in self._probe.maps) or "none"
            raise self._error(place, f"there is no map {name} (maps of this probe: {names})") from None

    def _check_instruction(self, instruction: Instruction, code: SnippetCode) -> None:
        if (reason := _refusal_reason(instruction)) is not None:
            raise self._error(code.place, f"{code.text!r} {reason}")
        if instruction.predicate is not None:
            self._check_source(instruction.predicate, code)
        if instruction.opcode == "bra":
            self._check_branch(instruction, code)
            return
        if not instruction.operands:
            raise self._error(code.place, f"{code.text!r} is not allowed in a probe; remove this instruction")
        self._check_destination(instruction.operands[0], code)
        for operand in instruction.operands[1:]:
            self._check_source(operand, code)

    def _check_branch(self, instruction: Instruction, code: SnippetCode) -> None:
        match instruction.operands:
            case (Symbol(name=name),) if name in self._snippet.labels:
                return
        raise self._error(code.place, f"{code.text!r} branches out of the snippet; branch to a label of the snippet")

    def _check_destination(self, operand: Operand, code: SnippetCode) -> None:
        match operand:
            case Register(name=name) if name in self._probe.registers or name == "_":
                return
            case Symbol(name=name) if name in self._probe.registers or name == "_":
                return
            case Pair(first, second):
                self._check_destination(first, code)
                self._check_destination(second, code)
            case Vector(elements):
                for element in elements:
                    self._check_destination(element, code)
            case Register(name=name):
                raise self._error(
                    code.place,
                    f"{code.text!r} writes {name}, which this probe does not declare; add '.reg'",
                )
            case _:
                raise self._error(
                    code.place,
                    f"{code.text!r}: the first operand must be a register of the probe; declare one with '.reg'",
                )

    def _check_source(self, operand: Operand, code: SnippetCode) -> None:
        match operand:
            case Register(name=name, selector=component) if name in SPECIAL_REGISTERS:
                self._check_special_register(name, component, code.place)
            case Register(name=name) | Symbol(name=name):
                self._check_name(name, code)
            case Pair(first, second):
                self._check_source(first, code)
                self._check_source(second, code)
            case Vector(elements) | OperandList(elements):
                for element in elements:
                    self._check_source(element, code)
            case Negated(operand=inner) | Sum(base=inner):
                self._check_source(inner, code)
            case Raw():
                raise self._error(code.place, f"{code.text!r} cannot be parsed: check for a missing semicolon")
            case Memory() | Element():
                raise self._error(
                    code.place,
                    f"{code.text!r} uses an address in memory; use a register or OUT, IN1, …",
                )

    def _check_name(self, name: str, code: SnippetCode) -> None:
        if name == LAUNCH_HELPER:
            raise self._error(code.place, f"{name} is available only in SAVE; save it in a resident map")
        if name in SNIPPET_HELPERS:
            self._check_helper(name, code.place)
        elif name not in self._probe.registers and name not in SPECIAL_REGISTERS and name != "_":
            raise self._error(code.place, f"{code.text!r} uses {name}, which this probe does not declare; add '.reg'")

    def _check_helper(self, name: str, place: FileLocation) -> None:
        if name == LAUNCH_HELPER:
            if not self._is_at_kernel or not self._probe.is_resident:
                raise self._error(place, f"{name} is available only at position 'kernel', with a resident map")
            return
        if name in (WAIT_HELPER, LONGEST_HELPER):
            raise self._error(place, f"{name} is available only at a wait; write position = 'wait.1'")
        if name in (BLOCK_HELPER, ISSUED_HELPER) and (
            self._is_at_kernel or self._is_at_instruction or self._is_at_loop or self._is_at_source
        ):
            raise self._error(place, f"{name} is available only at a block; write position = 'block.load'")
        if name not in (BLOCK_HELPER, ISSUED_HELPER, LINE_HELPER) and self._is_at_block:
            raise self._error(
                place, f"{name} is a property of an instruction; it is not available at blocks and source lines"
            )
        if self._is_at_kernel:
            raise self._error(
                place, f"{name} is a property of an instruction; it is not available at position 'kernel'"
            )
        if name != LINE_HELPER and self._is_retried:
            raise self._error(place, f"{name} is not available for a retry loop; remove '+' from the position")
