"""What a person can do about a kernel that was not probed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.reasons import advice_on

if TYPE_CHECKING:
    from tui_probe.reasons import Reason

_BY_STATUS = {
    "excluded": "It was left out by --kernel or --exclude. Run again without them to probe it.",
    "pending": "It is being prepared: pruned, probed and assembled.",
    "failed": "The original kernel ran in its place, with its own results. process.log says what went wrong.",
    "skipped": "The original kernel ran. event.log has the lines around its first launch.",
}


def advice(status: str, why: Reason | None) -> str:
    """What to do about a kernel of this status; "" for a probed one.

    The code of the reason tells, with its parameters. Where it does not, or is not known, the status has a word.
    """
    if status == "probed":
        return ""
    told = "" if why is None else advice_on(why.code, why.parameters)
    return told or _BY_STATUS.get(status, "")
