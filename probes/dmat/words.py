"""How to read the picture of accesses."""

from __future__ import annotations

from typing import Final

EXPLANATION: Final = (
    "Time runs to the right, addresses run down: a band for each tensor or allocation, gaps between them left out."
    " Each cell counts the accesses of its cycles and bytes; more dots, or a higher shade, are more accesses.",
    "Sectors per request: a warp's load or store asks for 32-byte sectors. 32 lanes of 4 bytes side by side touch 4;"
    " each lane in a sector of its own 32. “used” is the part of the moved bytes that the lanes asked for.",
    "A flat row is one place used again and again, a diagonal walks through memory, a column touches many addresses"
    " at once. Below stands what is under the cursor.",
)
