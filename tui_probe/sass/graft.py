"""Insert code around instructions of a kernel without moving any of them.

An instruction becomes a branch to code behind the kernel's own: what comes before it, itself, what comes after it, and
a branch back. Nothing else in the kernel changes its place, so its branches, line tables and relocations stay true.
Tables of the file that describe the length of the code and the parameters are changed. Instructions of loops that are
copied (:mod:`tui_probe.sass.loop_copies`) have what comes before them in the copy, and do not become branches.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.binaries.cubin import SYMBOL, Cubin
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import nv_info
from tui_probe.sass.layout import lay_out
from tui_probe.sass.loop_copies import LoopCopy, with_copies_listed
from tui_probe.sass.nv_info import (
    SIZED_FORMAT,
    Attribute,
    attribute_bytes,
    read_attributes,
    short_attribute,
    words_attribute,
)
from tui_probe.sass.target import INFO_PREFIX, PARAMETER_BYTES
from tui_probe.sass.variables import SharedVariables, shared_variables
from tui_probe.sass.words import (
    BRA,
    BSYNC,
    CONTROL_FLOW,
    EXIT,
    PT,
    WORD_BYTES,
    Word,
    branch_target,
    branch_word,
    code_of,
    nop_word,
    operation_of,
    with_moved_branch,
    without_guard,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.sass.target import GraftTarget

_PARAMETER_NOTES: Final = 0x1F000
"""Bits below the size in a ``PARAMETER``, as ptxas sets them for a number or an address."""
_SIZE_SHIFT: Final = 18
"""Lowest bit of the size in bytes there."""
_MANY_PARAMETERS: Final = 4096
"""Bytes of parameters up to CUDA 12.0; above, attributes have another form."""
_MOST_PARAMETERS: Final = 32764
"""Bytes of parameters that a kernel may have since CUDA 12.1."""
_SHORT_BASE: Final = 0x160
"""Start of parameters on older architectures, unless they have more bytes than are there."""
_CODE_ALIGN: Final = 128
_COUNT_SHIFT: Final = 24
_INFO_SYMBOL: Final = (1 << _COUNT_SHIFT) - 1
"""``info`` of a code section: the number of registers in bits 31:24, of the kernel's symbol in those below."""
_BRA: Final = operation_of(BRA)
MOVABLE_OPERATIONS: Final = frozenset({_BRA, operation_of(BSYNC)})
"""BRA and BSYNC do elsewhere what they did: a branch is given the new distance, and lanes wait for all others at the
same place, as they all come there by the same way.
"""
_SHADOW_PREFIXES: Final = (".nv.merc.", ".nv.capmerc")
"""A second form of the code, for other devices of the family, which would say something else."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Code to put around the instruction at byte offset ``offset`` of a kernel.

    ``preceding`` runs in the lanes that execute the instruction; at an ``EXIT`` these are the lanes that leave, so it
    has no ``following`` code. ``runs_in_all_lanes``: the code runs in all lanes that come there, and minds the guard of
    the instruction itself. Unless it ``waits``, the branch to it waits for no scoreboard; its code begins a line of the
    instruction cache then, since a line that has to be fetched would be measured as part of a wait.
    """

    offset: int
    preceding: tuple[Word, ...]
    following: tuple[Word, ...] = ()
    runs_in_all_lanes: bool = False
    waits: bool = True


class FilePatch(NamedTuple):
    """An address to be written into the file: see ``variables.AddressPatch``."""

    kind: str
    offset: int
    addend: int
    name: str


@dataclass(frozen=True, slots=True)
class GraftedCubin:
    """A cubin with a graft."""

    image: bytes
    branches: tuple[int, ...]
    """Byte offsets of replaced instructions."""
    start: int
    """Byte offset of the added code."""
    registers: int
    """Registers of a thread."""
    added_count: int = 0
    """Instructions of the added code, without padding."""
    patches: tuple[FilePatch, ...] = ()
    """Addresses of the original module's variables, to be written before the file is loaded."""
    constants: tuple[tuple[str, int], ...] = ()
    """Name and bytes of the constant memory to be copied before each launch."""
    copies: Mapping[int, int] = field(default_factory=dict)
    """Byte offsets of copied instructions, and of the copies that are executed in their place."""


def _append_splices(
    target: GraftTarget, splices: Sequence[Splice], code: _AppendedCode, code_words: list[Word]
) -> list[int]:
    """Append the splices to ``code_words``, each reached by a branch at its place. Return the offsets of exits."""
    exits = dict.fromkeys(target.exits())
    for splice in splices:
        word = code_words[splice.offset // WORD_BYTES]
        _refuse_splice(target, splice, word)
        exit_ = code.add(splice, word)
        if splice.offset in exits:
            exits[splice.offset] = exit_
        template = word.with_guard(PT) if splice.runs_in_all_lanes else word
        branch = branch_word(target.arch, splice.offset, code.places[splice], template)
        code_words[splice.offset // WORD_BYTES] = branch if splice.waits else branch.with_wait_mask(0)
    code_words += code.words
    code_words += [nop_word()] * (-len(code_words) % (_CODE_ALIGN // WORD_BYTES))
    return sorted({offset if exit_ is None else exit_ for offset, exit_ in exits.items()})


def _append_copies(
    arch: int,
    loops: Sequence[Sequence[range]],
    added_words: Mapping[int, Sequence[Word]],
    code: _AppendedCode,
    code_words: list[Word],
) -> dict[int, int]:
    """Append a copy of each loop, reached by a branch in place of its first instruction. Return the byte offsets of the
    copies of instructions by their numbers.
    """
    copies: dict[int, int] = {}
    for blocks in loops:
        copy = LoopCopy(arch, blocks, code.end, added_words)
        copy.write(code_words)
        copies |= copy.copy_offsets
        header = blocks[0].start
        template = code_words[header].with_guard(PT)
        code_words[header] = branch_word(arch, header * WORD_BYTES, code.end, template)
        code.words += copy.words
    return copies


def apply_splices(
    target: GraftTarget,
    splices: Sequence[Splice],
    parameters: int,
    registers: int,
    rewritten: Mapping[int, Word] | None = None,
    flags: Iterable[Attribute] = (),
    loops: Sequence[Sequence[range]] = (),
) -> GraftedCubin:
    """Put splices into a kernel, which gets that many more ``parameters`` of 8 bytes, and ``registers`` at least.

    ``rewritten`` are instructions that stay where they are, changed, by byte offset; ``flags`` attributes that the
    kernel has besides its own. ``loops`` are the blocks of each loop that is copied. Raises UnsupportedKernelError.
    """
    _refuse_moved_relocations(target, splices)
    code_words = list(target.words)
    for offset, word in (rewritten or {}).items():
        code_words[offset // WORD_BYTES] = word
    code = _AppendedCode(target.arch, target.code.size)
    copied_offsets = {index * WORD_BYTES for blocks in loops for block in blocks for index in block}
    branch_splices = [splice for splice in splices if splice.offset not in copied_offsets]
    copied_words = {
        splice.offset // WORD_BYTES: splice.preceding for splice in splices if splice.offset in copied_offsets
    }
    copies = _append_copies(target.arch, loops, copied_words, code, code_words)
    exit_offsets = _append_splices(target, branch_splices, code, code_words)
    count = max(target.registers, registers)
    kernel_variables = shared_variables(target)
    attributes = with_copies_listed(_kernel_attributes(target, exit_offsets, parameters), copies)
    image = _write_cubin(
        target, code_words, [*attributes, *_new_flags(target, flags)], parameters, count, kernel_variables
    )
    branches = [*(splice.offset for splice in branch_splices), *(blocks[0].start * WORD_BYTES for blocks in loops)]
    offsets = {index * WORD_BYTES: copy_offset for index, copy_offset in copies.items()}
    patches = _file_patches(image, kernel_variables)
    return GraftedCubin(
        image,
        tuple(sorted(branches)),
        start=target.code.size,
        registers=count,
        added_count=len(code.words),
        patches=patches,
        constants=kernel_variables.constants,
        copies=offsets,
    )


@dataclass(slots=True)
class _AppendedCode:
    """The code behind a kernel's own, as it grows. Equal exits share theirs."""

    arch: int
    start: int
    words: list[Word] = field(default_factory=list)
    places: dict[Splice, int] = field(default_factory=dict)
    _exits: dict[tuple[tuple[Word, ...], Word], tuple[int, int]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + len(self.words) * WORD_BYTES

    def add(self, splice: Splice, word: Word) -> int | None:
        """Add the code of a splice around ``word``; where its ``EXIT`` is, if it is one."""
        if word.operation == operation_of(EXIT):
            final_exit = without_guard(word).with_wait_mask(0)
            key = splice.preceding, final_exit
            if key not in self._exits:
                self._exits[key] = self.end, self.end + len(splice.preceding) * WORD_BYTES
                self.words += [*splice.preceding, final_exit]
            self.places[splice], exit_ = self._exits[key]
            return exit_
        if not splice.waits:
            self.words += [nop_word()] * (-len(self.words) % (_CODE_ALIGN // WORD_BYTES))
        self.places[splice] = self.end
        if word.operation == _BRA:
            word = with_moved_branch(self.arch, word, splice.offset, self.end + len(splice.preceding) * WORD_BYTES)
        self.words += [*splice.preceding, word.without_reuse(), *splice.following]
        self.words.append(branch_word(self.arch, self.end, splice.offset + WORD_BYTES))
        return None


def _refuse_splice(target: GraftTarget, splice: Splice, word: Word) -> None:
    position = f"{splice.offset:#06x}"
    if word.operation == operation_of(EXIT):
        if splice.following:
            raise UnsupportedKernelError(because("graft-exits"))
        return
    moves = word.operation in MOVABLE_OPERATIONS and splice.runs_in_all_lanes and not splice.following
    if (word.operation in CONTROL_FLOW and not moves) or not (word.is_unconditional or splice.runs_in_all_lanes):
        raise UnsupportedKernelError(because("graft-position", at=position))
    if splice.offset == 0 and any(
        word.opcode == BRA and branch_target(target.arch, index * WORD_BYTES, word) == 0
        for index, word in enumerate(target.words)
    ):
        raise UnsupportedKernelError(because("graft-position", at=position))


def _refuse_moved_relocations(target: GraftTarget, splices: Sequence[Splice]) -> None:
    """A relocation of an instruction that goes elsewhere would change the branch in its place."""
    places = {splice.offset for splice in splices}
    for section in target.cubin.relocation_sections():
        if section.info == target.code.number:
            for relocation in target.cubin.relocations(section):
                if relocation.offset // WORD_BYTES * WORD_BYTES in places:
                    raise UnsupportedKernelError(because("graft-position", at=f"{relocation.offset:#06x}"))


def _file_patches(image: bytes, variables: SharedVariables) -> tuple[FilePatch, ...]:
    sections = Cubin.read(image).sections
    return tuple(
        FilePatch(patch.kind, sections[patch.section].offset + patch.offset, patch.addend, patch.name)
        for patch in variables.patches
    )


def _parameter_bytes(target: GraftTarget, parameters: int) -> int:
    """Return the bytes of all parameters, with that many added ones."""
    return target.added_offset + parameters * PARAMETER_BYTES if parameters else target.parameter_bytes


def _new_flags(target: GraftTarget, flags: Iterable[Attribute]) -> list[Attribute]:
    present_numbers = {attribute.number for attribute in target.attributes}
    return [flag for flag in dict.fromkeys(flags) if flag.number not in present_numbers]


def _write_cubin(
    target: GraftTarget,
    code_words: list[Word],
    attributes: list[Attribute],
    parameters: int,
    registers: int,
    variables: SharedVariables,
) -> bytes:
    cubin = target.cubin
    code = code_of(code_words)
    size = _parameter_bytes(target, parameters)
    if size > (_MANY_PARAMETERS if target.base == _SHORT_BASE else _MOST_PARAMETERS):
        raise UnsupportedKernelError(because("graft-parameters"))
    module = cubin.section(INFO_PREFIX)
    contents = variables.relocations | {
        target.code.number: code,
        target.constants.number: cubin.content(target.constants).ljust(target.base + size, b"\0"),
        target.info.number: attribute_bytes(attributes),
        module.number: _with_registers(cubin.content(module), target.symbol.number, registers),
        cubin.symbol_section.number: _with_size(target, len(code)),
    }
    infos = {}
    if target.code.info >> _COUNT_SHIFT:
        infos[target.code.number] = target.code.info & _INFO_SYMBOL | registers << _COUNT_SHIFT
    return lay_out(cubin, contents, infos, _kept_sections(cubin))


def _kept_sections(cubin: Cubin) -> int:
    """Return the number of sections that stay: all but a second form of the code, which must come last and be mentioned
    nowhere.
    """
    unreal = [section.number for section in cubin.sections if section.name.startswith(_SHADOW_PREFIXES)]
    count = len(cubin.sections) - len(unreal)
    if any(index < count for index in unreal) or any(
        count <= symbol.section < len(cubin.sections) for symbol in cubin.symbols
    ):
        raise UnsupportedKernelError(because("graft-section", section=cubin.sections[unreal[0]].name))
    return count


def _kernel_attributes(target: GraftTarget, exits: list[int], parameters: int) -> list[Attribute]:
    """Return the kernel's attributes, with its new parameters and exits."""
    size = _parameter_bytes(target, parameters)
    new_attributes = _added_parameter_attributes(target, parameters)
    result = []
    for attribute in target.attributes:
        if attribute.number == nv_info.PARAMETER_BANK:
            result.append(Attribute(SIZED_FORMAT, attribute.number, attribute.value[:6] + struct.pack("<H", size)))
        elif attribute.number == nv_info.PARAMETERS_SIZE:
            result.append(short_attribute(attribute.number, size))
        elif attribute.number == nv_info.EXITS:
            result.append(words_attribute(attribute.number, *exits))
        else:
            if attribute.number in (nv_info.PARAMETER, nv_info.LONG_PARAMETER):
                result += new_attributes
                new_attributes = []
            result.append(_long_form(attribute) if size > _MANY_PARAMETERS else attribute)
    if new_attributes:
        result += new_attributes
        result += _first_parameter_attributes(target, size)
    return result


def _added_parameter_attributes(target: GraftTarget, parameters: int) -> list[Attribute]:
    """Return the attributes of the parameters that are added, the last one first."""
    first_number, offset = target.parameters, target.added_offset
    notes = PARAMETER_BYTES << _SIZE_SHIFT | _PARAMETER_NOTES
    attributes = [
        words_attribute(nv_info.PARAMETER, 0, (first_number + index) | (offset + index * PARAMETER_BYTES) << 16, notes)
        for index in reversed(range(parameters))
    ]
    return (
        [_long_form(attribute) for attribute in attributes]
        if offset + parameters * PARAMETER_BYTES > _MANY_PARAMETERS
        else attributes
    )


def _long_form(attribute: Attribute) -> Attribute:
    """Return an attribute as a kernel with many bytes of parameters has it."""
    if attribute.number != nv_info.PARAMETER:
        return attribute
    zero, place, notes = attribute.words()
    return words_attribute(nv_info.LONG_PARAMETER, zero, place, notes >> _SIZE_SHIFT)


def _first_parameter_attributes(target: GraftTarget, size: int) -> list[Attribute]:
    """Return the attributes for a kernel that had no parameters."""
    for symbol in target.cubin.symbols:
        if symbol.section == target.constants.number:
            bank = struct.pack("<IHH", symbol.number, target.base, size)
            return [
                short_attribute(nv_info.PARAMETERS_SIZE, size),
                Attribute(SIZED_FORMAT, nv_info.PARAMETER_BANK, bank),
            ]
    raise UnsupportedKernelError(because("graft-parameters"))


def _with_registers(content: bytes, symbol: int, registers: int) -> bytes:
    return attribute_bytes(
        words_attribute(attribute.number, symbol, registers)
        if attribute.number == nv_info.REGISTERS and attribute.words()[:1] == [symbol]
        else attribute
        for attribute in read_attributes(content)
    )


def _with_size(target: GraftTarget, size: int) -> bytes:
    """Return the symbol table with another size of the kernel."""
    table = bytearray(target.cubin.content(target.cubin.symbol_section))
    entry_offset = target.symbol.number * SYMBOL.size
    fields = SYMBOL.unpack_from(table, entry_offset)
    SYMBOL.pack_into(table, entry_offset, *fields[:5], size)
    return bytes(table)
