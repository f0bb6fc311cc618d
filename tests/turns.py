"""What takes turns: of many cases that would take minutes, a run of the tests takes every third, ``--in-full`` all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import pytest

One = TypeVar("One")
Other = TypeVar("Other")

TURNS: Final = 3
_full: list[bool] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--in-full", action="store_true", help="every case of the tests whose cases take turns")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--in-full"):
        _full.append(True)


def is_due(number: int) -> bool:
    """Is it the turn of the case with this number?"""
    return bool(_full) or number % TURNS == 0


def due(cases: Iterable[One]) -> list[One]:
    """Those whose turn it is, the first among them."""
    return [case for number, case in enumerate(cases) if is_due(number)]


def due_pairs(ones: Iterable[One], others: Iterable[Other]) -> list[tuple[One, Other]]:
    """Each of ``ones`` with some of ``others``, and each of these with some of those."""
    listed = list(others)
    return [(one, other) for i, one in enumerate(ones) for j, other in enumerate(listed) if is_due(i + j)]
