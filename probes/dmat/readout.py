"""Accesses under the cursor, as text and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_probe.draw import units
from tui_probe.draw.spans import clip, width
from tui_probe.trace.kernel_files import Offset, short_position
from tui_probe.trace.launch_shape import SECTOR_BYTES

from .boxes import repeats_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tui_probe.records.probed_sites import AccessLine

    from .axes import Band
    from .boxes import BoxDetail
    from .frame import CellDetail, Patch


@dataclass(frozen=True, slots=True)
class ReadOut:
    """A spot: its band, the accesses of its cell, and, where they were looked at, what they are."""

    spot: Patch
    band: Band | None
    accesses: int
    exact: bool
    detail: CellDetail | None
    code: Mapping[int, AccessLine]
    warps_per_block: int
    blocks: range
    """The numbers of the blocks that were measured."""
    box_sectors: int = 0
    """Sectors of bulk copies in the cell, besides the accesses."""

    @property
    def address(self) -> int:
        """Address of the first access in the cell, else of the start of the cell."""
        first = None if self.detail is None else self.detail.first
        return self.spot.low if first is None else first[1]

    @property
    def index(self) -> tuple[int, ...] | None:
        """Index of the element at that address, in a tensor that was named; else None."""
        if self.band is None or self.band.tensor is None:
            return None
        return self.band.tensor.index(self.address - self.band.origin)

    def record(self) -> dict[str, Any]:
        """The place of the cursor: bytes and cycles as in the axes, ``index`` of the element in the band's tensor."""
        index = self.index
        return {
            "band": None if self.band is None else self.band.name,
            "address": self.address,
            "index": None if index is None else list(index),
            "cycle": self.spot.start if self.detail is None or self.detail.first is None else self.detail.first[0],
            "accesses": self.accesses,
            "box_sectors": self.box_sectors,
        }

    def lines(self, cells: int, most: int) -> list[str]:
        """Both in at most ``most`` lines: where, then who, going on in the next line where one is full."""
        lines = [clip(" · ".join(self.place()), cells)]
        for part in self.makers():
            joined = f"{lines[-1]} · {part}"
            if len(lines) > 1 and (width(joined) <= cells or len(lines) == most):
                lines[-1] = clip(joined, cells)
            else:
                lines.append(clip(part, cells))
        return lines

    def place(self) -> Iterator[str]:
        """Position: band, offset, index and shape, address, cycles."""
        low, high = self.spot.low, self.spot.high - 1
        first = None if self.detail is None else self.detail.first
        if self.band is not None:
            index, tensor = self.index, self.band.tensor
            text = "" if index is None else f" [{', '.join(map(str, index))}]"
            text += "" if tensor is None or not tensor.shape else f" of {tensor.text}"
            yield f"{self.band.name} +{self.address - self.band.origin:#x}{text}"
        yield f"{self.address:#x}" if first is not None else f"{low:#x} to {high:#x}"
        if first is not None:
            yield f"cycle {units.count(first[0])}"
        else:
            yield f"cycles {units.count(self.spot.start)} to {units.count(self.spot.end - 1)}"
        about = "" if self.exact else "about "
        if self.accesses or not self.box_sectors:
            yield f"{about}{units.counted(self.accesses, 'access')}"
        if self.box_sectors:
            yield f"{about}{units.counted(self.box_sectors, 'sector')} of bulk copies"
        if (self.accesses or self.box_sectors) and self.detail is None:
            yield "zoom in for details"

    def makers(self) -> Iterator[str]:
        """Origin, most important first: instruction, sectors per request, loads and stores, warps."""
        detail = self.detail
        if detail is None or not (detail.accesses or detail.boxes):
            return
        for line, count in detail.lines.most_common(1):
            others = len(detail.lines) - 1
            if detail.boxes is not None:
                yield self._copies(detail.boxes, line)
            yield self._instruction(line) + (f" ({count / detail.lines.total():.0%}) +{others}" if others else "")
        used = self.used()
        share = "" if used is None else f", {used:.0%} used"
        if detail.accesses:
            yield f"{detail.sectors / detail.accesses:.1f} sectors per request{share}"
        kinds = self.kinds()
        if kinds is not None:
            yield ", ".join(units.counted(count, kind) for kind, count in kinds.items())
        block, warp = divmod(detail.warps.most_common(1)[0][0], self.warps_per_block)
        others = len(detail.warps) - 1
        yield f"block {self.blocks[block]} warp {warp}" + (f" +{others}" if others else "")

    def _copies(self, boxes: BoxDetail, line: int) -> str:
        """``2 bulk copies, box 64 B × 8``."""
        code = self.code.get(line)
        of_lanes = boxes.lanes > 1 and not (code is not None and isinstance(code.line, Offset))
        lanes = f" (lowest of {boxes.lanes} lanes)" if of_lanes else ""
        copies = f"{units.count(boxes.copies)} bulk {'copy' if boxes.copies == 1 else 'copies'}"
        return f"{copies}, box {boxes.shape}{lanes}{'' if code is None else repeats_text(code)}"

    def _instruction(self, line: int) -> str:
        """``ld.global.f32 PTX:84 matmul.cu:11``."""
        code = self.code.get(line)
        if code is None:
            return short_position(line)
        source = "" if code.source is None else f" {code.source.file.rpartition('/')[2]}:{code.source.line}"
        return f"{code.opcode} {short_position(code.line)}{source}"

    def used(self) -> float | None:
        """Return the share of requested bytes in the sectors that were moved.

        None where the PTX does not tell how much that is, and where lanes share addresses, so that it is more.
        """
        if self.detail is None or not self.detail.moved or self.detail.boxes is not None:
            return None
        asked = 0
        for line, count in self.detail.lines.items():
            code = self.code.get(line)
            if code is None or code.bytes is None:
                return None
            asked += count * code.bytes
        share = asked / (SECTOR_BYTES * self.detail.moved)
        return share if self.detail.lines and share <= 1 else None

    def kinds(self) -> dict[str, int] | None:
        """Accesses by kind; None where the records or the PTX do not tell."""
        if self.detail is None or not self.code or not self.detail.lines or self.detail.boxes is not None:
            return None
        counts: dict[str, int] = {}
        for line, count in self.detail.lines.items():
            code = self.code.get(line)
            kind = "access" if code is None else {"copy": "load"}.get(code.kind, code.kind)
            counts[kind] = counts.get(kind, 0) + count
        return dict(sorted(counts.items()))
