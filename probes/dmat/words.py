"""How to read the picture of accesses."""

from __future__ import annotations

from typing import Final

EXPLANATION: Final = (
    "Time runs to the right, addresses run down: one band per tensor or allocation, with the gaps between them left"
    " out. Each cell counts the accesses in its range of cycles and bytes: more dots, or a stronger shade, mean more"
    " accesses.",
    "Sectors per request: a warp's load or store moves whole 32-byte sectors. 32 lanes of 4 bytes side by side touch"
    " 4; lanes that are each in a sector of their own touch 32. “used” is the share of the moved bytes that the lanes"
    " asked for; of the rest not all are wasted sectors, since sectors are moved whole: Lines counts those. One"
    " colouring shows, in tenths, how many of the moved sectors are wasted: 16 bytes per lane side by side touch 16"
    " and waste none.",
    "A flat row is memory used again and again, a diagonal walks through memory, a column touches many addresses at"
    " once. The lines below describe what is under the cursor.",
)
