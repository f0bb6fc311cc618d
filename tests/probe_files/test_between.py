"""``run --between FILE:A-B``: the probe that is written for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_probe.cli.main import main
from tui_probe.engine.verify import verify
from tui_probe.errors import UsageError
from tui_probe.probe_files.between import probe_between
from tui_probe.probe_files.loading import load_probe


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_it_is_a_probe_of_these_lines_that_stays_where_it_is(state: Path) -> None:
    file = probe_between("my-kernels/attn.py:22-26")
    assert file == state / "tui-probe/probes/between_my_kernels_attn_py_22_26.py"
    assert probe_between("my-kernels/attn.py:22-26") == file
    assert list(file.parent.iterdir()) == [file]
    probe = load_probe(str(file))
    verify(probe)
    named = {each.source for point in probe.points for each in point.positions if each.source}
    assert [(each.file, each.first, each.last) for each in named] == [("my-kernels/attn.py", 22, 26)]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("attn.py", "name lines of source, such as attn.py:22-26"),
        ("ld.global", "name lines of source, such as attn.py:22-26"),
        ("attn.py:9-3", "the first one comes first"),
    ],
)
def test_what_names_no_lines_is_refused(lines: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="--between"):
        probe_between(lines)
    assert main(["run", "--between", lines, "--", "true"]) == 2
    assert words in capsys.readouterr().err


def test_a_state_folder_that_cannot_be_written_is_said(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "file"))
    (state / "file").write_text("")
    assert main(["run", "--between", "attn.py:22", "--", "true"]) != 0
    assert str(state / "file") in capsys.readouterr().err
