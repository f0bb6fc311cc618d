"""Declarations of probes are checked when they are made: a slip there would be a page that is silently wrong."""

from __future__ import annotations

from typing import Any, get_args


def one_of(choices: Any, value: object, what: str) -> None:
    """Raises ValueError, with what there is, for a value that is none of a Literal's."""
    known = get_args(choices)
    if value not in known:
        raise ValueError(f"{what} is {value!r}; there are {', '.join(map(repr, known))}")
