"""Whether the sides of a comparison measured anything: shapes and resources are known of kernels without a probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tui_probe.pages.changes import Change, Pair
    from tui_probe.pages.figures import Figure

_KNOWN_ANYWAY: Final = frozenset(
    ("launches", "blocks", "threads", "registers", "spills", "shared", "blocks_per_sm", "occupancy")
)
"""Figures of the launch and of the compiled kernel, which no run has to measure."""


def measured_on_both(change: Change) -> bool:
    """Whether a run measured it on both sides."""
    return _is_measured(change.before) and _is_measured(change.after)


def unmeasured(pairs: Sequence[Pair]) -> str:
    """The letters of the sides on which nothing was measured: ``""``, ``A``, ``B``, ``AB``; "" without a pair."""
    changes = [change for pair in pairs for change in pair.changes]
    sides = {"A": [each.before for each in changes], "B": [each.after for each in changes]}
    return "".join(letter for letter, figures in sides.items() if pairs and not any(map(_is_measured, figures)))


def unmeasured_words(letters: str, alone: Collection[str], *, traces: bool, unread: bool) -> str:
    """``nothing was measured by either run``; "" without letters. ``alone``: the sides with kernels of their own.

    ``unread``: there are results that could not be read.
    """
    if not letters:
        return ""
    which = letters if len(letters) == 1 else "either run" if traces else "either"
    if unread:
        return f"no result of {which} could be read"
    of_both = " of the kernels in both" if set(letters) & set(alone) else ""
    return f"nothing was measured {'by' if traces else 'of'} {which}{of_both}"


def _is_measured(figure: Figure) -> bool:
    return figure.value is not None and not figure.of_probe and figure.key not in _KNOWN_ANYWAY
