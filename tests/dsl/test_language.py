"""The names for editors: all of the language, and nothing that runs."""

from __future__ import annotations

import runpy

import pytest

from tests.dsl.running import PROGRAMS
from tui_probe import dsl
from tui_probe.dsl.reading import RESERVED_NAMES
from tui_probe.errors import ProbeFileError


def test_every_word_can_be_imported() -> None:
    assert set(dsl.__all__) - {"SavedMap"} == RESERVED_NAMES - {"range", "CALLBACK"}
    assert all(hasattr(dsl, name) for name in dsl.__all__)


@pytest.mark.parametrize("name", ["clock", "clock32", "time", "cuid", "lane", "warp"])
def test_a_call_outside_a_probe_is_refused(name: str) -> None:
    with pytest.raises(ProbeFileError, match="compiled, not run"):
        getattr(dsl, name)()


def test_a_probe_that_is_run_as_a_program_says_what_to_do() -> None:
    with pytest.raises(ProbeFileError, match="tui-probe run -p FILE"):
        runpy.run_path(str(PROGRAMS[0]))
