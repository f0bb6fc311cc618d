"""How large a launch is."""

from __future__ import annotations

from typing import TypeAlias

Dim3: TypeAlias = tuple[int, int, int]
Shape: TypeAlias = tuple[int, int, int, int, int, int, int]
"""Grid x y z, block x y z in threads, dynamic shared memory in bytes per block; each at most the largest u32."""
