"""Traces that come with the package say the same as those that were collected, and nothing of the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tui_probe
from tests.evals.bundle import bundle, without_paths
from tui_probe.cli.main import main


@pytest.mark.parametrize("name", ["scheduling", "warps"])
def test_a_bundle_says_the_same(
    name: str, tmp_path: Path, natives: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    assert main(["eval", name, "--run", "--sim", "--out", str(tmp_path / name), "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    sizes = bundle(tmp_path / name, tmp_path / "bundled" / name)
    after = tui_probe.evaluate(name, tmp_path / "bundled" / name).to_dict()
    assert after["tables"] == before["tables"]
    assert after["said"] == before["said"]
    assert all(0 < size < 200_000 for size in sizes.values())
    texts = [
        path.read_bytes() for path in (tmp_path / "bundled").rglob("*") if path.is_file() and path.suffix != ".bin"
    ]
    assert not [text for text in texts if str(tmp_path).encode() in text or b"/programs/" in text]


def test_paths_are_cut_and_the_command_has_its_length() -> None:
    log = b"[init] cmd 40 /opt/env/bin/python /data/x/fill.py --a 1/2\n[probe] mkdir /data/tr/Nov_1/kernel/0_ab\n"
    assert without_paths(log) == b"[init] cmd 22 python fill.py --a 1/2\n[probe] mkdir 0_ab\n"
    assert without_paths(b'// a / b\n/* c/d */ .file 1 "/root/k.py"') == b'// a / b\n/* c/d */ .file 1 "k.py"'
