"""The kernel without a probe, assembled once for all probes of a run: to them all it is the same."""

from __future__ import annotations

import os
import shutil
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path

    from tui_probe.engine.assemble import AssemblyReport
    from tui_probe.errors import ToolchainError

_MOST: Final = 256
"""Kernels whose assemblies are remembered: the probes of one ask for it at about the same time."""
FILE: Final = "pruned.bin"


class PrunedAssemblies:
    """Who assembled which kernel without a probe. Safe to use from several threads."""

    def __init__(self) -> None:
        self._begun: OrderedDict[Path, tuple[Path, Future[AssemblyReport | ToolchainError]]] = OrderedDict()
        self._lock = threading.Lock()

    def assembly(
        self, kernel: Path, directory: Path, begin: Callable[[], Future[AssemblyReport | ToolchainError]]
    ) -> tuple[Path, Future[AssemblyReport | ToolchainError]]:
        """The folder in which the kernel of ``kernel`` is assembled, and the assembly, which is begun if none is."""
        with self._lock:
            if kernel not in self._begun:
                self._begun[kernel] = directory, begin()
                while len(self._begun) > _MOST:
                    self._begun.popitem(last=False)
            return self._begun[kernel]


def take_over(made: Path, directory: Path) -> None:
    """Have the binary that another probe's preparation made. Raises OSError."""
    try:
        os.link(made / FILE, directory / FILE)
    except OSError:
        shutil.copyfile(made / FILE, directory / FILE)
