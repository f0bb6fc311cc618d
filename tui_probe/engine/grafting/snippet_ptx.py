"""Write the entry and exit code of a probe as kernels of their own, whose SASS a graft takes.

What is in a register of the probe at the entry and used at an exit goes through marks: at the entry a store to shared
memory whose address is the value, at an exit a load from an address that names it. No snippet may touch shared memory
itself, so each such access in what ptxas makes is a mark, and the graft puts moves in their places.

The parameters of the probe lie behind ``LEADING_BYTES`` bytes of others; the graft shifts what reads them to where they
are in the kernel that it is put into.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.addressing import Addressing, LaunchKind
from tui_probe.engine.expansion import SAMPLE_PARAMETERS, Expander, ExpansionOptions, Sampling
from tui_probe.engine.kernel import UnusedNames
from tui_probe.engine.snippet import saves_uniform_values
from tui_probe.engine.warp_substitutes import REDUX_FROM
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import Level, Locate, Save, SnippetCode
from tui_probe.probe_model.storage import MARK_BYTES, Layout, probe_parameters, storage_of
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probe_model.probe import Map, Probe, Snippet

LEADING_BYTES: Final = 64
"""Bytes of parameters before those of the probe."""
MANY_LEADING_BYTES: Final = 8192
"""Leading bytes for kernels with many parameters, which begin at another offset on some architectures."""
ENTRY_KERNEL: Final = "tui_probe_entry"
EXIT_KERNEL: Final = "tui_probe_exit"
FLAT_KERNEL: Final = "tui_probe_flat_exit"
"""The exit code for flat launches only: others leave where it finds out."""

_VERSIONS: Final = {88: "9.0", 100: "8.6", 101: "8.6", 103: "8.8", 107: "9.4", 110: "9.0", 120: "8.7", 121: "8.8"}
"""The first version of PTX that has an architecture."""
_DEFAULT_VERSION: Final = "8.1"
"""PTX version of the architectures up to sm_90 that are not in the table."""
_NEWEST_VERSION: Final = "9.0"
_HOPPER_ARCH: Final = 90
_WORD: Final = re.compile(r"%[\w$]+")
_HALF_BITS: Final = 32
_HALF_BYTES: Final = 4
_WIDE_BITS: Final = 64
_BITS: Final = re.compile(r"[busf](\d+)")


class SnippetPtx(NamedTuple):
    """The PTX of a probe's kernels, and which of them it needs. ``probe_parameters`` are those of a probed kernel."""

    text: str
    has_entry: bool
    has_flat: bool
    """True if there is exit code for flat launches."""
    carried: int
    """32-bit values that are kept from the entry to the exits."""
    parameters: int


def is_graftable(probe: Probe) -> bool:
    """Return whether all that a probe does is at entries and exits of kernels."""
    return all(position.is_kernel for position in probe.positions)


def snippet_ptx(
    probe: Probe, arch: int, *, samples_blocks: bool, leading_bytes: int = LEADING_BYTES, in_slots: bool = False
) -> SnippetPtx:
    """Return the kernels of a probe for a device of ``arch`` (90). Raises UnsupportedKernelError if it needs more.

    ``in_slots``: what is carried is kept in the slots of a map, in bytes that a record leaves, instead of registers.
    """
    if not is_graftable(probe):
        raise UnsupportedKernelError(because("needs-instructions", probe=probe.name))
    if any(own_map.cap != 1 for own_map in probe.maps):
        raise UnsupportedKernelError(because("graft-many-records", probe=probe.name))
    entry_snippets = [point.before for point in probe.points if point.before]
    exit_snippets = [point.after for point in probe.points if point.after]
    carried = _carried_registers(probe, entry_snippets, exit_snippets)
    room = (
        _map_with_words(probe, _carried_words(probe, carried), samples_blocks=samples_blocks)
        if in_slots and carried
        else None
    )
    entry_kernel = _KernelText(probe, arch, samples_blocks=samples_blocks, room=room)
    entry_lines = entry_kernel.entry_lines(entry_snippets, carried) if entry_snippets else []
    exit_kernel = _KernelText(probe, arch, samples_blocks=samples_blocks, room=room)
    exit_lines = exit_kernel.exit_lines(exit_snippets, carried)
    head = f".version {ptx_version(arch)}\n.target sm_{arch}\n.address_size 64\n"
    text = (
        head
        + entry_kernel.text(ENTRY_KERNEL, entry_lines, leading_bytes)
        + exit_kernel.text(EXIT_KERNEL, exit_lines, leading_bytes)
    )
    has_flat = not samples_blocks and not in_slots and _finds_flat_slot(probe, exit_snippets)
    if has_flat:
        flat_kernel = _KernelText(probe, arch, samples_blocks=False, room=None, launches=LaunchKind.FLAT)
        text += flat_kernel.text(FLAT_KERNEL, flat_kernel.exit_lines(exit_snippets, carried), leading_bytes)
    return SnippetPtx(
        text,
        bool(entry_snippets),
        has_flat,
        0 if in_slots else _carried_words(probe, carried),
        len(entry_kernel.parameters()),
    )


def _finds_flat_slot(probe: Probe, exit_snippets: Sequence[Snippet]) -> bool:
    """Return whether the code at exits finds one slot, by the warp, and that before anything is done for good."""
    saves = [statement for snippet in exit_snippets for statement in snippet.statements if isinstance(statement, Save)]
    if len(saves) != 1 or not saves_uniform_values(probe):
        return False
    own_map = probe.map_named(saves[0].map)
    return own_map.level is Level.WARP and storage_of(probe, own_map).layout is Layout.MARKED


def _map_with_words(probe: Probe, word_count: int, *, samples_blocks: bool) -> Map:
    """Return a map whose slots have room for that many words behind their records. Raises UnsupportedKernelError."""
    for own_map in probe.maps:
        storage = storage_of(probe, own_map)
        free_bytes = storage.slot_bytes - storage.record_bytes - MARK_BYTES
        if storage.layout is Layout.MARKED and free_bytes >= word_count * _HALF_BYTES and not samples_blocks:
            return own_map
    raise UnsupportedKernelError(because("graft-value", probe=probe.name, register=min(probe.registers)))


def ptx_version(arch: int) -> str:
    """Return the oldest version of PTX that knows an architecture (90)."""
    return _VERSIONS.get(arch, _DEFAULT_VERSION if arch <= _HOPPER_ARCH else _NEWEST_VERSION)


def _carried_registers(probe: Probe, entry_snippets: Sequence[Snippet], exit_snippets: Sequence[Snippet]) -> list[str]:
    """Return the probe's registers that both what comes before and what comes after the kernel use."""
    common_registers = _snippet_registers(entry_snippets) & _snippet_registers(exit_snippets)
    return [name for name in probe.registers if name in common_registers]


def _snippet_registers(snippets: Sequence[Snippet]) -> set[str]:
    registers: set[str] = set()
    for snippet in snippets:
        for statement in snippet.statements:
            match statement:
                case SnippetCode(text=text):
                    registers.update(_WORD.findall(text))
                case Save(values=values):
                    registers.update(values)
                case Locate():
                    pass
    return registers


def _carried_words(probe: Probe, carried: Sequence[str]) -> int:
    return sum(_register_bits(probe, name) // _HALF_BITS for name in carried)


def _register_bits(probe: Probe, name: str) -> int:
    """Return the bits of a register that is carried. Raises UnsupportedKernelError for one that cannot be."""
    match = _BITS.fullmatch(probe.registers[name])
    bits = int(match[1]) if match else 0
    if bits not in (_HALF_BITS, _WIDE_BITS):
        raise UnsupportedKernelError(because("graft-value", probe=probe.name, register=name))
    return bits


class _KernelText:
    """One of the two kernels."""

    def __init__(
        self,
        probe: Probe,
        arch: int,
        *,
        samples_blocks: bool,
        room: Map | None,
        launches: LaunchKind = LaunchKind.GENERAL,
    ) -> None:
        self._probe = probe
        self._room = room
        self._names = UnusedNames("")
        self._sampling = Sampling(probe, self._names) if samples_blocks else None
        self._addressing = Addressing(self._names, None, self._sampling.place if self._sampling else "", launches)
        options = ExpansionOptions(reduces=arch >= REDUX_FROM, tail_in_use=room is not None, gathers=True)
        self._expander = Expander(probe, self._names, self._addressing, options)

    def parameters(self) -> list[str]:
        """Return the names of the parameters that a probed kernel gets, in order."""
        sample = SAMPLE_PARAMETERS if self._sampling else ()
        return [self._names.parameter(*parameter) for parameter in (*probe_parameters(self._probe), *sample)]

    def entry_lines(self, snippets: Sequence[Snippet], carried: Sequence[str]) -> list[str]:
        """Write the entry code, with marks for values needed later."""
        lines = self._expander.begin()
        lines += [line for snippet in snippets for line in self._expander.expand(snippet, {})]
        saves = any(isinstance(statement, Save) for snippet in snippets for statement in snippet.statements)
        if saves:
            lines = [*self._sample_lines(), *(self._sampling.skip_outside_sample(lines) if self._sampling else lines)]
        mark = self._names.temporary("mark", "b32")
        halves = self._carried_halves(carried, lines)
        if self._room is not None:
            places = self._kept_addresses(self._room, len(halves))
            stores = [f"st.global.u32 [{place}], {value};" for place, value in zip(places, halves, strict=True)]
            return [*lines, *self._slot_lines(self._room), *stores]
        for index, value in enumerate(halves):
            lines += [f"mov.b32 {mark}, {value};", f"st.volatile.shared.u32 [{_mark_address(mark, index + 1)}], 0;"]
        return lines

    def exit_lines(self, snippets: Sequence[Snippet], carried: Sequence[str]) -> list[str]:
        """Marks for what was kept, and what runs last."""
        lines: list[str] = []
        mark = self._names.temporary("mark", "b32")
        index = 0
        places = self._kept_addresses(self._room, _carried_words(self._probe, carried)) if self._room else []
        if self._room is not None:
            lines += self._slot_lines(self._room)
        for name in carried:
            register, halves = self._names.register(name, self._probe.registers[name]), []
            for _ in range(_register_bits(self._probe, name) // _HALF_BITS):
                index += 1
                halves.append(self._names.temporary(f"half{index}", "b32"))
                if places:
                    lines.append(f"ld.global.u32 {halves[-1]}, [{places[index - 1]}];")
                    continue
                lines += [
                    f"mov.u32 {mark}, 0;",
                    f"ld.volatile.shared.u32 {halves[-1]}, [{_mark_address(mark, index)}];",
                ]
            lines.append(f"mov.b{len(halves) * _HALF_BITS} {register}, {_vector_text(halves)};")
        body = self._expander.exit_lines(snippets)
        return [*lines, *self._sample_lines(), *(self._sampling.skip_outside_sample(body) if self._sampling else body)]

    def text(self, name: str, lines: Sequence[str], leading_bytes: int) -> str:
        """Return the kernel with those lines, and that many bytes of parameters before its own."""
        leading_parameter = f"\t.param .align 8 .b8 tui_probe_leading[{leading_bytes}]"
        declared = ",\n".join([leading_parameter, *(f"\t.param .u64 {parameter}" for parameter in self.parameters())])
        body = "\n\t".join(["", *self._names.declarations(), *lines, "ret;"])
        return f".visible .entry {name}(\n{declared}\n)\n{{{body}\n}}\n"

    def _slot_lines(self, room: Map) -> list[str]:
        """Return lines that compute the address of this thread's or warp's slot."""
        slot_bytes, parameter = storage_of(self._probe, room).slot_bytes, self._names.parameter("map", room.name)
        if room.level is Level.WARP:
            return self._addressing.marked_slot(parameter, slot_bytes)
        return self._addressing.slot(room.level) + self._addressing.pointer(parameter, slot_bytes)

    def _kept_addresses(self, room: Map, count: int) -> list[str]:
        """Return the addresses in the slot of ``count`` words that are kept from entry to exit."""
        start = storage_of(self._probe, room).record_bytes + MARK_BYTES
        return [f"{self._addressing.address}+{start + index * _HALF_BYTES}" for index in range(count)]

    def _sample_lines(self) -> list[str]:
        if self._sampling is None:
            return []
        number = self._names.temporary("block", "b32")
        return self._sampling.begin(self._addressing.block_number(number), number)

    def _carried_halves(self, carried: Sequence[str], lines: list[str]) -> list[str]:
        """Registers of 32 bits that hold what is carried; adds the lines that fill them."""
        halves: list[str] = []
        for name in carried:
            register = self._names.register(name, self._probe.registers[name])
            if _register_bits(self._probe, name) == _HALF_BITS:
                halves.append(register)
                continue
            pair = [self._names.temporary(f"half{len(halves) + number}", "b32") for number in (1, 2)]
            lines.append(f"mov.b64 {_vector_text(pair)}, {register};")
            halves += pair
        return halves


def _mark_address(register: str, number: int) -> str:
    """Return the address of a mark that the graft replaces; ``register`` is 0."""
    from tui_probe.sass.snippets import MARK_STEP  # with code that only grafts need

    return f"{register}+{MARK_STEP * number}"


def _vector_text(names: Sequence[str]) -> str:
    return f"{{{', '.join(names)}}}" if len(names) > 1 else names[0]
