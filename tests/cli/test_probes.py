"""Description of built-in and custom probes by ``tui-probe probes``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import golden
from tui_probe.cli import main as front
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.probe_files.catalogue import built_in_sets
from tui_probe.probe_files.loading import built_in_names, load_probe

OWN = '''# Counts what is stored.
callback = "stored"

[about]
title = "stores"
measures = "stores of each warp, and where each was"
unit = "instructions, bytes"
cost = "a register"
checked = "by hand"

[map.stored]
level = "warp"
regs = { number = "u32", bytes = "u64" }

[map.places]
level = "thread"
cap = 4
regs = { address = "u64" }

[probe.whole]
position = "kernel"
before = """
.reg .b32 %number;
.reg .b64 %moved;
mov.u32 %number, 0;
mov.u64 %moved, 0;
"""
after = "ADD [ stored ] {%number, %moved};"

[probe.count]
position = "st.global:st.!shared.!local"
before = """
add.u32 %number, %number, 1;
SAVE [ places ] {ADDR};
"""

[probe.blocks]
position = "block.store"
before = "add.u64 %moved, %moved, 4;"
'''


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert front.main(["probes", *words]) == 0
    return capsys.readouterr().out


def test_ones_own_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(OWN)
    golden("probes_own.txt", told(capsys, "own.toml"))


def test_a_probe_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    source = Path(__file__).parents[1] / "dsl" / "programs" / "counts.py"
    monkeypatch.chdir(tmp_path)
    Path("counts.py").write_text(source.read_text())
    golden("probes_python.txt", told(capsys, "counts.py"))


@pytest.mark.parametrize("name", built_in_names())
def test_every_built_in_probe_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, name)
    about, _, source = text.partition("\n\n")
    labels = [line.split()[0] for line in about.splitlines() if not line.startswith(" ")]
    assert labels == ["probe", "measures", "unit", "cost", "weight", "checked", "keeps", "saves", "runs", "file"]
    assert source.rstrip() == load_probe(name).source.rstrip()
    assert sum(line.startswith(" ") for line in about.splitlines()) == (
        2 * len(load_probe(name).maps) + len(load_probe(name).points) - 3
    )


def test_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys)
    listed = [block.partition(":")[0] for block in text.split("\n\n")]
    assert listed == ["Sets of probes", *built_in_sets(), "Probes", *built_in_names()]
    assert listed[1] == DEFAULT_PROBE


def test_a_set_is_described_by_its_probes(capsys: pytest.CaptureFixture[str]) -> None:
    for name, probes in built_in_sets().items():
        text = told(capsys, name)
        assert text.startswith(f"{name}: {probes.title}\n")
        for choice in probes.choices:
            assert f"\n\n{choice.partition(':')[0]}: " in text


def test_a_probe_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        front.main(["probes", "nonsense"])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "block_sched" in captured.err
