"""All cubins of an image, and all kernels in them: the engine itself looks for one kernel only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.binaries.cubin import is_cubin
from tui_probe.binaries.fatbin import EntryKind
from tui_probe.engine.image_kernels import fitting_cubins, kernels_of
from tui_probe.ptx.images import image_entries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def kernels_in(image: bytes, arch: int | None = None) -> dict[str, int]:
    """Return the newest architecture of each kernel in SASS; with ``arch`` (90), the newest that such a device runs.

    Raises ImageError.
    """
    architectures: dict[str, int] = {}
    for entry in fitting_cubins(image_entries(image), arch):
        for name in kernels_of(entry):
            architectures.setdefault(name, entry.arch)
    return architectures


def cubins_in(image: bytes, architectures: Collection[int]) -> Iterator[bytes]:
    """Yield the cubins of an image for these architectures (90), in order. Raises ImageError."""
    for entry in image_entries(image):
        if entry.kind == EntryKind.ELF and entry.arch in architectures and is_cubin(content := entry.content()):
            yield content
