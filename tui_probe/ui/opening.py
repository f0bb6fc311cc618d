"""Opening a view in the background: how far it is, and giving it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw.view import Cancelled
from tui_probe.errors import ProbeError
from tui_probe.pages.views import FIXED, kinds

if TYPE_CHECKING:
    from tui_probe.draw.view import View
    from tui_probe.probekit.kind import Kind, Source


@dataclass(frozen=True)
class Nothing:
    """There is no view to show: why, and whether that is a fault."""

    text: str
    fault: bool = False


class Opening:
    """One view of one source. ``run`` belongs to a background thread; all else may be used from anywhere."""

    def __init__(self, kind: Kind, source: Source) -> None:
        self.kind = kind
        self.source = source
        self.share = 0.0
        self.cancelled = False

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.cancelled = True

    def _progress(self, share: float) -> None:
        if self.cancelled:
            raise Cancelled
        self.share = max(0.0, min(1.0, share))

    def run(self) -> View | Nothing | None:
        """The view; why there is none; or None if it was cancelled."""
        if self.cancelled:
            return None
        try:
            missing = self.kind.missing(self.source)
            if missing is not None:
                return Nothing(missing)
            view = self.kind.open(self.source, self._progress)
        except Cancelled:
            return None
        except (ProbeError, OSError) as error:
            return Nothing(str(error), fault=True)
        return None if self.cancelled else view


def pages_of(source: Source) -> list[tuple[Kind, bool]]:
    """The views in the order of their pages, and whether each has something to show: first the fixed ones."""
    fixed = [kind for kind in kinds() if kind.name in FIXED]
    others = [kind for kind in kinds() if kind.name not in FIXED]
    known = {kind.name: _has(kind, source) for kind in (*fixed, *others)}
    others.sort(key=lambda kind: not known[kind.name])
    return [(kind, known[kind.name]) for kind in (*fixed, *others)]


def _has(kind: Kind, source: Source) -> bool:
    try:
        return kind.missing(source) is None
    except (ProbeError, OSError):
        return False
