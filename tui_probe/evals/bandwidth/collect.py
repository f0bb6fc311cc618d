"""What is run: the measurement of bandwidths, and matrix products, with nothing probed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

if TYPE_CHECKING:
    from tui_probe.evals.evaluation import Setting

_NOTHING: Final = ("-k", "no kernel of this name", "--launches", "0", "--no-times", "--no-source",
                   "--max-trace-bytes", "1M", "--max-log-bytes", "1M")  # fmt: skip


def collect(_: Setting) -> list[Collection]:
    """Both write JSON, which is what is kept. The simulated GPU has no bandwidth."""
    measure = (PYTHON, "-m", "tui_probe", "bandwidth", "--auto", "--format", "json")
    return [
        Collection("memories", measure, _NOTHING, ("tui_probe",), gpu=True, keeps="output"),
        Collection("products", (PYTHON, f"{PROGRAMS}/products.py"), _NOTHING, ("torch",), gpu=True, keeps="output"),
    ]
