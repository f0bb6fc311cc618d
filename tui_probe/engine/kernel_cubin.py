"""The cubin that a probe is put into: the kernel alone, or the whole one, where that cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.errors import ImageError
from tui_probe.ptx.line_tables import cut_table
from tui_probe.sass.excerpt import KeptWholeError
from tui_probe.sass.prune import prune

if TYPE_CHECKING:
    from tui_probe.sass.cubin import Cubin


def kernel_cubin(cubin: Cubin, name: str, wrong: str) -> tuple[Cubin, str]:
    """The cubin of a kernel out of one that may have others, and what to say of it in process.log, "" for nothing.

    ``wrong`` is what went wrong in the trial of pruned cubins: unless it is empty, the cubin stays whole.
    """
    if wrong:
        return cubin, f"[prune] pruned.bin is the whole cubin: the test of pruned ones failed here: {wrong}"
    try:
        alone = prune(cubin, name, cut_table)
    except (KeptWholeError, ImageError) as error:
        return cubin, f"[prune] pruned.bin is the whole cubin: {error}"
    if alone is cubin:
        return cubin, ""
    sizes = f"{len(alone.image)} of {len(cubin.image)} bytes"
    return alone, f"[prune] pruned.bin is the kernel alone, of {len(cubin.kernels)}: {sizes}"
