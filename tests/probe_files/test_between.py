"""``run --between FILE:A-B``: the probe that is written for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_probe.cli.main import main
from tui_probe.engine.verify import verify_probe
from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_files.option_probes import line_range_of, line_range_probe, write_line_range_probe


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("my-kernels/attn.py:22-26", "my-kernels/attn.py:22-26"),
        ("attn.py:26-22", "attn.py:22-26"),
        ("attn.py:22-22", "attn.py:22"),
        ("./kernels/../attn.py:22", "attn.py:22"),
        ("../../src/attn.py:22", "src/attn.py:22"),
        ("/src/attn.py:22", "/src/attn.py:22"),
        ("my soft.cu:1-3", "my soft.cu:1-3"),
        ("default_program:4", "default_program:4"),
    ],
)
def test_line_range_probe(text: str, lines: str) -> None:
    name = line_range_probe(text)
    assert line_range_of(name) == lines
    probe = load_probe(name)
    verify_probe(probe)
    assert probe.about.title == f"Time that each warp spends in {lines}, including inlined code"
    named = {str(item.source) for point in probe.points for item in point.positions if item.source}
    assert named == {lines}
    assert [item.name for item in probe.maps] == ["between"], "so that runs before and after a change are compared"


def test_each_has_a_file_of_its_own_that_is_written_again(state: Path) -> None:
    files = [write_line_range_probe(line_range_probe(text)) for text in ("flash-attn.cu:5", "flash_attn.cu:5")]
    assert len(set(files)) == len(list((state / "tui-probe/probes").iterdir())) == 2
    files[0].unlink()
    assert load_probe("between=flash-attn.cu:5").path == files[0]
    assert write_line_range_probe(
        line_range_probe("/a/very/long/way/to/some/folder/of/a/project/attn.cu:5")
    ).name.startswith("between_")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("attn.py", "write FILE:FIRST-LAST, such as attn.py:22-26, or FILE:LINE"),
        ("ld.global", "write FILE:FIRST-LAST"),
        ("attn.py:22,26", "write FILE:FIRST-LAST"),
        ("attn.py:22-", "write FILE:FIRST-LAST"),
        ("attn.py:0-3", "lines count from 1"),
        ('a"b.cu:3', "the file name contains a quote, backslash or control character; rename the file"),
        ("a\\b.cu:3", "the file name contains a quote, backslash or control character; rename the file"),
    ],
)
def test_range_without_lines_is_refused(lines: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="--between"):
        line_range_probe(lines)
    assert main(["run", "--between", lines, "--", "true"]) == 2
    assert words in capsys.readouterr().err


def test_unwritable_state_directory_is_reported(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "file"))
    (state / "file").write_text("")
    with pytest.raises(ProbeFileError, match="cannot save the generated probe"):
        load_probe(line_range_probe("attn.py:22"))
