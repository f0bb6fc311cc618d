"""Fixtures of the pages' tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fixed_probes import fixed_probes

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="package")
def _fixed_probes() -> Iterator[None]:
    with fixed_probes():
        yield
