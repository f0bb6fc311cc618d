"""What takes turns: of many cases that would take minutes, a run of the tests takes every third, ``--in-full`` all."""

from __future__ import annotations

from typing import Final

import pytest

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
