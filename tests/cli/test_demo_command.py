"""The options that ``demo`` gives its run."""

from __future__ import annotations

from argparse import ArgumentParser

import pytest

from tui_probe.cli import demo
from tui_probe.launcher.options import RunOptions


@pytest.mark.parametrize(
    ("has_gpu", "screen", "launches"), [(False, False, "2"), (False, True, "6"), (True, False, "6")]
)
def test_demo_launches_what_its_probes_need(
    has_gpu: bool, screen: bool, launches: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the simulated GPU a report needs one launch per probe, which takes a third of the time of six."""
    given: list[RunOptions] = []
    monkeypatch.setattr(demo, "has_gpu", lambda: has_gpu)
    monkeypatch.setattr(demo, "wants_screen", lambda _: screen)
    monkeypatch.setattr(demo, "profile", lambda options, _: given.append(options) or 0)
    parser = ArgumentParser()
    demo.add_arguments(parser)
    assert demo.run(parser.parse_args([])) == 0
    (options,) = given
    assert options.command[options.command.index("--repeat") + 1] == launches
    assert ("--slow" in options.command) == screen
    assert options.min_free_disk == "32M"
