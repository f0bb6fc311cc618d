"""What the Pythons that a target starts find of ours: for tensors, for PTX, and modules that programs import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "PYTHONPATH"
_FOLDER: Final = Path(__file__).resolve().parents[1] / "tensortrace"
START: Final = str(_FOLDER / "start")
"""Has a ``sitecustomize`` for what begins with the program, which then runs the program's own."""
MODULES: Final = str(_FOLDER / "shim")
"""Has a module ``neutrino``, which gives way to one that is installed."""


def python_path(base: Mapping[str, str]) -> str | None:
    """``PYTHONPATH`` for the target: what it was, and ours around it. None where a colon in our path forbids that.

    Modules stand last, so that whatever the user put there wins; the ``sitecustomize`` must be found first.
    """
    if os.pathsep in str(_FOLDER):
        return None
    given = base.get(VARIABLE)
    own = [entry for entry in given.split(os.pathsep) if entry not in (START, MODULES)] if given else []
    return os.pathsep.join([START, *own, MODULES])
