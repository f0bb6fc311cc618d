"""Cases that take turns: of many that would take minutes, a run of the tests takes an eighth, ``--in-full`` all.

Which eighth is a hash of the commit, so that each case is run by one commit in eight; ``--turn N`` repeats it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeVar

import pytest

One = TypeVar("One")
Other = TypeVar("Other")

TURNS: Final = 8
_ROOT: Final = Path(__file__).resolve().parent
_full: list[bool] = []
_turn: list[int] = [0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--in-full", action="store_true", help="every case of the tests whose cases take turns")
    parser.addoption("--turn", type=int, choices=range(TURNS), help="the cases of this turn, not of the commit's")


def pytest_configure(config: pytest.Config) -> None:
    _full[:] = [True] if config.getoption("--in-full") else []
    chosen: int | None = config.getoption("--turn")
    _turn[0] = turn_of_commit() if chosen is None else chosen


def pytest_report_header() -> str:
    return "every case" if _full else f"cases of turn {_turn[0]} of {TURNS} (--turn {_turn[0]} repeats them)"


def turn_of_commit() -> int:
    """Return the turn of the commit that is checked out, 0 outside of a repository."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False)
    return int(asked.stdout, 16) % TURNS if asked.returncode == 0 else 0


def is_due(number: int) -> bool:
    """Return whether the case with this number is in the turn."""
    return bool(_full) or number % TURNS == _turn[0]


def examples(count: int) -> int:
    """Return how many examples a property draws: two fifths of ``count``, others in each run; all ``--in-full``."""
    return count if _full else count * 2 // 5


def due(cases: Iterable[One]) -> list[One]:
    """Return the cases of the turn; of fewer cases than turns, one."""
    listed = list(cases)
    return [case for number, case in enumerate(listed) if is_due(number)] or [listed[_turn[0] % len(listed)]]


def due_pairs(ones: Iterable[One], others: Iterable[Other]) -> list[tuple[One, Other]]:
    """Return each of ``ones`` with some of ``others``, and each of these with some of those."""
    rows, columns = list(ones), list(others)
    turns = min(TURNS, len(rows), len(columns))  # with more, some would have none
    return [
        (row, column)
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
        if _full or (i + j - _turn[0]) % turns == 0
    ]
