"""A kernel that does nothing, in machine code: what the hook takes the time of an empty pair of events around.

The driver could compile it from PTX, in the program's own process. But it aborts a process that ends meanwhile.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.snippet_ptx import ptx_version
from tui_probe.errors import ProbeError

if TYPE_CHECKING:
    from tui_probe.engine.assemble import Assembler

KERNEL: Final = "nothing"
ARCHITECTURES: Final = (75, 80, 90, 100, 120)
"""The machine code of each runs on all later devices of its generation: sm_80 also on 86, 87 and 89."""


def keep_empty_kernels(assembler: Assembler, folder: Path) -> None:
    """Put the kernel into ``folder``, once for each architecture that the assembler knows, as ``sm_90.cubin``.

    Where it cannot be done there is no file, and the pair is empty: the log says so.
    """
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for arch in ARCHITECTURES:
            path = folder / f"sm_{arch}.cubin"
            if not path.exists():
                _assemble(assembler, arch, path)


def _assemble(assembler: Assembler, arch: int, path: Path) -> None:
    """Assemble it under another name first: a hook may look for the file at any time."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch, contextlib.suppress(ProbeError):
        ptx, binary = Path(scratch) / "nothing.ptx", Path(scratch) / "nothing.cubin"
        head = f".version {ptx_version(arch)}\n.target sm_{arch}\n.address_size 64\n"
        ptx.write_text(head + f".visible .entry {KERNEL}() {{ ret; }}\n")
        assembler.assemble(ptx, binary, f"sm_{arch}", KERNEL)
        binary.replace(path)
