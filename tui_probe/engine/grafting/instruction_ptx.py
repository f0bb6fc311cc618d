"""Write what a probe does at single instructions as kernels of their own, whose SASS a graft takes.

There is a kernel for each kind of place, one for the entry and one for the exits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.additions import always_zero
from tui_probe.engine.expansion import SAMPLE_PARAMETERS
from tui_probe.engine.grafting.site_kernel_text import (
    ENTRY,
    EXIT,
    HALF,
    KEPT_TYPES,
    REGISTER_WORD,
    KernelFrame,
    SiteKernelText,
    SnippetSite,
    WaitSums,
    saved_maps,
    snippet_before,
    snippet_before_block,
    snippet_registers,
)
from tui_probe.engine.grafting.site_values import InstructionFacts, Mark
from tui_probe.engine.grafting.snippet_ptx import LEADING_BYTES, ptx_version
from tui_probe.engine.kernel import UnusedNames
from tui_probe.engine.site_records import SiteRecords
from tui_probe.engine.warp_substitutes import REDUX_FROM
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import SnippetCode
from tui_probe.probe_model.storage import probe_parameters
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.grafting.sass_blocks import SassBlock
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.probe_model.probe import Probe, Snippet

_WORDS_OF_MAP: Final = 2
_WORDS_OF_WARP_MAP: Final = 3


class InstructionPtx:
    """The kernels of a probe for the probed parts of one kernel.

    ``live_registers`` are the probe's registers that live from the entry to the exits. ``record_maps`` have several
    records per slot: the place of a slot's next record is in registers, too.

    Raises UnsupportedKernelError for a probe that needs facts that SASS does not have.
    """

    def __init__(
        self,
        probe: Probe,
        places: Sequence[SnippetSite],
        arch: int,
        *,
        blocks: Sequence[SassBlock] = (),
        waits: Sequence[WaitSums] = (),
        map_layout: MapLayout | None = None,
        of_warps: bool = False,
        samples_blocks: bool,
    ) -> None:
        """Choose live registers; ``of_warps``: what they hold is the same in all lanes of a warp."""
        self._of_warps = of_warps
        self._map_layout = map_layout
        self._probe = probe
        self._places = list({place.key: place for place in places}.values())
        self._blocks = list({block.key: block for block in blocks}.values())
        self.sites = SiteRecords(probe, UnusedNames(""))
        for place in places:
            self.sites.number_site(place.ptx_equivalent, place.point, 0)
        self._waits = waits
        for point in (point for point in probe.points if any(position.is_wait for position in point.positions)):
            for wait in waits:
                self.sites.number_site(wait.instruction, point, 0)
        self._arch = arch
        self._samples_blocks = samples_blocks
        self.leading_bytes = LEADING_BYTES
        self.reduces = arch >= REDUX_FROM
        points = {place.point.name: place.point for place in places}.values()
        kernel_points = [point for point in probe.points if all(position.is_kernel for position in point.positions)]
        at_places = [snippet_before(point) for point in points]
        at_blocks = {
            code.point.name: snippet_before_block(code.point) for block in self._blocks for code in block.codes
        }
        self._entry_snippets = [point.before for point in kernel_points if point.before]
        self._exit_snippets = [point.after for point in kernel_points if point.after]
        self.zero = always_zero([*at_places, *at_blocks.values(), *self._entry_snippets, *self._exit_snippets])
        self.live_registers = self._select_live_registers(
            [self._entry_snippets, self._exit_snippets, at_places, list(at_blocks.values())]
        )
        for block in self._blocks:
            self._refuse_values_across_blocks(block)
        self.record_maps = [own_map for own_map in probe.maps if own_map.cap != 1]

    @property
    def keys(self) -> list[tuple[str, InstructionFacts]]:
        """The key of each place with code of its own, in the order of the kernels ``site_kernel_name(index)``."""
        return [place.key for place in self._places]

    @property
    def block_keys(self) -> list[tuple[str, ...]]:
        """The key of each block with code of its own, in the order of the kernels ``block_kernel_name(index)``."""
        return [block.key for block in self._blocks]

    @property
    def words(self) -> int:
        """Number of 32-bit values that live while the kernel runs."""
        halves = sum(KEPT_TYPES[self._probe.registers[name]] // HALF for name in self.live_registers)
        words_per_map = _WORDS_OF_WARP_MAP if self._of_warps else _WORDS_OF_MAP
        iterations = sum(own_map.every > 0 for own_map in self.record_maps)
        return halves + words_per_map * len(self.record_maps) + iterations + self._probe.is_resident

    @property
    def has_flag(self) -> bool:
        """True if a predicate decides which lanes make an access."""
        return any(place.facts.is_predicated for place in self._places)

    @property
    def has_entry(self) -> bool:
        """True if the probe needs code at the entry."""
        return bool(self.live_registers or self.record_maps or saved_maps(self._entry_snippets))

    @property
    def has_exit(self) -> bool:
        """True if the probe needs code at the exits."""
        return bool(self._exit_snippets or self.record_maps or self._waits)

    def site_numbers(self, place: SnippetSite) -> dict[int, int]:
        """Return the numbers of a place's instruction by mark. Its code reads them, so equal code serves all
        instructions.
        """
        numbers = self.sites.numbers(place.ptx_equivalent)
        return {Mark.FIRST_SITE + index: number for index, number in enumerate(numbers) if number is not None}

    def parameters(self) -> list[tuple[str, str]]:
        """Purpose and name of the parameters that a probed kernel gets, in order."""
        return [*probe_parameters(self._probe), *(SAMPLE_PARAMETERS if self._samples_blocks else ())]

    def _select_live_registers(self, groups: Sequence[Sequence[Snippet]]) -> list[str]:
        """Return the registers that snippets of several groups use. Raises UnsupportedKernelError for other types than
        those of ``KEPT_TYPES``.
        """
        register_sets = [snippet_registers(group) for group in groups]
        live_registers = [
            name
            for name in self._probe.registers
            if sum(name in names for names in register_sets) > 1 and name not in self.zero
        ]
        for name in live_registers:
            if self._probe.registers[name] not in KEPT_TYPES:
                raise UnsupportedKernelError(because("graft-value", probe=self._probe.name, register=name))
        return live_registers

    def _refuse_values_across_blocks(self, block: SassBlock) -> None:
        """Raise UnsupportedKernelError where a point needs what a point of other blocks left in a register: between
        blocks only what is kept lives on.
        """
        written_registers: set[str] = set()
        for code in block.codes:
            snippet = snippet_before_block(code.point)
            for register in sorted(
                snippet_registers([snippet]) & self._probe.registers.keys() - {*self.live_registers, *written_registers}
            ):
                if not _is_set_first(snippet, register):
                    raise UnsupportedKernelError(because("graft-value", probe=self._probe.name, register=register))
            written_registers |= snippet_registers([snippet])

    @property
    def head(self) -> str:
        """The PTX before the kernels."""
        return f".version {ptx_version(self._arch)}\n.target sm_{self._arch}\n.address_size 64\n"

    def kernels(self, leading_bytes: int = LEADING_BYTES) -> dict[str, str]:
        """Return the PTX of each kernel by name, with ``leading_bytes`` of parameters before those of the probe."""
        self.leading_bytes = leading_bytes
        named_places = [(site_kernel_name(index), place) for index, place in enumerate(self._places)]
        kernels = {name: self._new_kernel_text().site_text(name, place) for name, place in named_places}
        for index, block in enumerate(self._blocks):
            kernels[block_kernel_name(index)] = self._new_kernel_text().block_text(
                block_kernel_name(index), block.codes
            )
        if self.has_entry:
            kernels[ENTRY] = self._new_kernel_text().entry_text(self._entry_snippets)
        if self.has_exit:
            kernels[EXIT] = self._new_kernel_text().exit_text(self._exit_snippets, self._waits)
        return kernels

    def _new_kernel_text(self) -> SiteKernelText:
        frame = KernelFrame(
            self.live_registers,
            self.record_maps,
            self.zero,
            self.reduces,
            self.leading_bytes,
            self.parameters(),
            self.sites,
            self._map_layout,
            self._of_warps,
        )
        return SiteKernelText(self._probe, frame, samples_blocks=self._samples_blocks)


def site_kernel_name(index: int) -> str:
    """Return the name of a place's kernel."""
    return f"tui_probe_site_{index}"


def block_kernel_name(index: int) -> str:
    """Return the name of a kind of block's kernel."""
    return f"tui_probe_block_{index}"


def _is_set_first(snippet: Snippet, register: str) -> bool:
    """Return whether a snippet writes a register, no matter what its lanes, before it reads it."""
    for statement in snippet.statements:
        if isinstance(statement, SnippetCode) and register in (registers := REGISTER_WORD.findall(statement.text)):
            return registers[0] == register and registers.count(register) == 1
    return True
