"""Where caches lie. Apart from the cache itself: the launcher wants to know this before the program starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

EMPTY_KERNELS: Final = "empty"
"""Where the kernel that does nothing is: the engine fills the folder, the hook reads it."""


def default_folder(what: str = "kernels") -> Path | None:
    """``$XDG_CACHE_HOME/tui-probe/WHAT``, else below ``~/.cache``; None where there is no home."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if not chosen.startswith("/"):  # a relative path is to be ignored: XDG Base Directory Specification
        try:
            chosen = str(Path.home() / ".cache")
        except RuntimeError:
            return None
    return Path(chosen) / "tui-probe" / what
