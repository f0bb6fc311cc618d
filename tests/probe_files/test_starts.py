"""Files of new-probe are probes that work as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tui_probe.cli.main import main
from tui_probe.engine.verify import verify_probe
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.probe_model.positions import suspicious_positions

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
    verify_probe(probe)
    assert [item.name for item in probe.maps] == ["waits"]
    assert any(item.source for point in probe.points for item in point.positions) is (position != "ld.global")
    assert main(["check", f"waits{suffix}"]) == 0


def test_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("kept")
    assert main(["new-probe", "mine"]) == 2
    assert "mine.py exists" in capsys.readouterr().err
    assert (tmp_path / "mine.py").read_text() == "kept"
    assert main(["new-probe", "9lives"]) == 2


@pytest.mark.parametrize(
    ("position", "words"),
    [
        ("PTX:30-40", "'PTX:30-40' is not a position: lines of PTX or SASS cannot be given; write 'kernel'"),
        ("softmax.cu:22,25", "'softmax.cu:22,25' is not a position: write one FILE:LINE or"),
        ("attn.py:30-20", "lines count from 1, and FIRST must not be after LAST"),
        ("attn.py", "unknown PTX instruction attn; lines are FILE:FIRST-LAST"),
        ("garbage", "unknown PTX instruction garbage"),
        ("LD.GLOBAL", "unknown PTX instruction LD: did you mean ld?"),
        ("ld.globl", "unknown modifier .globl: did you mean global?"),
        ("", "'' is not a position"),
        ('"x"', "is not a position"),
        ("block", "blocks and loops may end at several places"),
    ],
)
@pytest.mark.parametrize("option", [(), ("--toml",)])
def test_a_position_that_is_none_is_refused_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: tuple[str, ...],
    position: str,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-probe", "waits", "--at", position, *option]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("clock", "clock is reserved by the probe language"),
        ("began", "began is declared twice"),
        ("probe", "probe.py and probe.toml are the main files of directories with a probe"),
        ("block_sched", "block_sched is a built-in probe"),
    ],
)
def test_a_name_that_means_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    """The results of a probe named as another one would be read as that one's."""
    monkeypatch.chdir(tmp_path)
    assert main(["new-probe", name]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("position", ["ld.!param", "ld.shared::cta", "mbarrier.try_wait+", "kernel", "st.global:red"])
def test_possible_kernel_content_is_not_suspicious(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, position: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-probe", "waits", "--at", position]) == 0


def test_no_probe_that_comes_along_is_doubted() -> None:
    assert {
        name: found for name in built_in_names() if (found := suspicious_positions(load_probe(name).positions))
    } == {}
