"""What new-probe writes is a probe that works as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tui_probe.cli.main import main
from tui_probe.engine.verify import verify
from tui_probe.probe_files.loading import load_probe

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("option", "suffix"), [((), ".py"), (("--toml",), ".toml")])
@pytest.mark.parametrize("position", ["ld.global", "attn.py:22-26"])
def test_the_start_is_a_probe(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: tuple[str, ...],
    suffix: str,
    position: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-probe", "waits", "--at", position, *option]) == 0
    assert capsys.readouterr().out == f"waits{suffix}\n"
    probe = load_probe(f"waits{suffix}")
    verify(probe)
    assert [each.name for each in probe.maps] == ["waits"]
    assert any(each.source for point in probe.points for each in point.positions) is (position != "ld.global")
    assert main(["check", f"waits{suffix}"]) == 0


def test_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("kept")
    assert main(["new-probe", "mine"]) == 2
    assert "mine.py is there already" in capsys.readouterr().err
    assert (tmp_path / "mine.py").read_text() == "kept"
    assert main(["new-probe", "9lives"]) == 2
