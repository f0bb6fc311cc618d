"""The screen begins at what the command line names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ui.conftest import on_stage
from tests.ui.synthetic import example
from tui_probe.trace.locate import Address
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("address", "kernel", "launch"),
    [
        (Address(None, "vectorized"), 1, None),
        (Address(None, "0", 2), 0, 2),
        (Address(None, None, 5), 2, 5),
    ],
)
async def test_a_kernel_and_its_launch(tmp_path: Path, address: Address, kernel: int, launch: int | None) -> None:
    trace = example(tmp_path / "trace")
    async with on_stage(Session(traces=(trace.directory,), address=address)) as stage:
        assert isinstance(stage.app.screen, KernelScreen)
        source = stage.live.current_selection.source()
        assert source is not None
        assert source.kernel.index == kernel
        assert (source.launch.number if source.launch else None) == launch
        await stage.press("escape")
        await stage.refresh()
        assert stage.app.screen is stage.live


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (Address(None, "nonsense"), "this trace has no :nonsense"),
        (Address(None, "0", 99), "this trace has no :0@99"),
        (Address(None, "0", 5), "this trace has no :0@5"),
        (Address(None, "regex:(", None), "not a regular expression"),
    ],
)
async def test_missing_address_is_reported(tmp_path: Path, address: Address, words: str) -> None:
    trace = example(tmp_path / "trace")
    trace.exit()
    async with on_stage(Session(traces=(trace.directory,), address=address), size=(120, 40)) as stage:
        assert stage.app.screen is stage.live
        assert words in stage.text


async def test_notice_is_shown_on_opened_screen(tmp_path: Path) -> None:
    trace = example(tmp_path / "trace")
    trace.exit()
    session = Session(traces=(trace.directory,), address=Address(None, "vectorized"), notice="the newest of 2 traces")
    async with on_stage(session, (80, 24)) as stage:
        assert isinstance(stage.app.screen, KernelScreen)
        await stage.refresh()
        assert "the newest of 2 traces" in stage.text
