"""Where to look first in a launch: what the probes found there, else the line that a page marks as the most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw.spot import Spot
from tui_probe.draw.view import Document
from tui_probe.errors import ProbeError
from tui_probe.pages.findings.found import find, find_all
from tui_probe.pages.findings.questions import open_questions
from tui_probe.pages.views import kind_of, kinds
from tui_probe.probekit.registry import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.pages.findings.found import Found
    from tui_probe.probekit.finding import Finding
    from tui_probe.probekit.kind import Source

_CELLS: Final = 80
_CODE: Final = "ptx"
_MARKING: Final = ("source", _CODE)
"""The pages that mark the line with most, the one to show first."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place on a page of the kernel, and what is there."""

    page: str
    spot: Spot
    words: str


@dataclass(frozen=True, slots=True)
class WorstPlace:
    """``worst`` is where to look first, and ``line`` the first line that anything was found of; None for none.

    ``marked`` is the line with most, where nothing was found that has a place. ``why`` says why there is none of them,
    and ``asks`` is the option of a run that would tell, "" for none.
    """

    worst: Place | None = None
    line: Place | None = None
    marked: Place | None = None
    why: str = ""
    asks: str = ""


def worst_place(source: Source) -> WorstPlace:
    """Of the launch at hand, or of the newest that has a result; of several probes that of the page at hand first.

    Reads results.
    """
    found = _found(source)
    unread = next((each for each in found if each.unread), None)
    worst = _first([each.worst for each in found])
    line = next((one for each in found for one in each.findings if one.line), None)
    if worst is not None or line is not None:
        return WorstPlace(_placed(worst or line), _placed(line))
    if unread is not None:
        return WorstPlace(why=f"the result could not be read: {unread.problem}")
    marked = _marked(source) if found else None
    return WorstPlace(marked=marked) if marked is not None else _none(source, found)


def _found(source: Source) -> list[Found]:
    """What each probe says, once."""
    first = find(source)
    others = [each for each in find_all(source) if first is None or each.probe != first.probe]
    return [*([] if first is None else [first]), *others]


def _first(worst: Sequence[Finding | None]) -> Finding | None:
    """What stands out comes before what does not."""
    known = [each for each in worst if each is not None]
    return next((each for each in known if each.stands_out), known[0] if known else None)


def _placed(finding: Finding | None) -> Place | None:
    """What names no page is of a line, and the code shows that."""
    if finding is None:
        return None
    return Place(finding.page or _CODE, finding.spot, f"{finding.label}: {finding.words}")


def _marked(source: Source) -> Place | None:
    """The mark of the first page that has one. A page that cannot be opened has none."""
    for name in _MARKING:
        kind = kind_of(name)
        try:
            view = kind.open(source, lambda _: None) if kind.missing(source) is None else None
        except (ProbeError, OSError):
            continue
        found = view.marked() if isinstance(view, Document) else None
        if found is not None and isinstance(view, Document):
            return Place(name, _spot(view, found[0]), found[1])
    return None


def _spot(view: Document, line: int) -> Spot:
    """That of the whole row of a line of PTX: other pages may have another line of it alone."""
    row = view.place_of(line, _CELLS)
    return Spot.of_line(line) if row is None else view.here(row, _CELLS)


def _none(source: Source, found: Sequence[Found]) -> WorstPlace:
    """Why there is no place."""
    kernel = source.kernel
    if kernel.status != "probed":
        return WorstPlace(why="the kernel was not probed, so nothing was measured of it: page 1 says why")
    if not found:
        return WorstPlace(why="this launch has no result")
    telling = _telling()
    if any(each.probe in telling for each in found):
        return WorstPlace(why="nothing stands out in this launch")
    probes = " and ".join(f"-p {each.probe}" for each in found if each.probe) or "what was recorded"
    asks = next((each.option for each in open_questions(kernel, found) if each.probe in telling), "")
    return WorstPlace(why=f"{probes} tells of no place", asks=asks)


def _telling() -> frozenset[str]:
    """The probes that tell of lines, or have a drawing."""
    drawn = (name for kind in kinds() if kind.drawn for name in kind.probes)
    return frozenset((*names_of(lambda probe: probe.lines), *drawn))
