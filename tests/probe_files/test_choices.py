"""Arguments of ``-p``: names, samples of their own, and sets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.errors import ProbeFileError
from tui_probe.probe_files import choices
from tui_probe.probe_files.choices import (
    MAX_PROBES,
    ProbeFacts,
    built_in_sets,
    choose_probes,
    compact_sample,
    describe_probe,
    find_set,
    reader_of,
    split_choice,
)
from tui_probe.probe_files.loading import built_in_files, built_in_names, load_probe, read_probe
from tui_probe.probe_model.probe import Probe
from tui_probe.probe_model.read_script import read_script

NAMES = built_in_names()
SAMPLES = st.one_of(
    st.integers(1, 1 << 20).map(str),
    st.integers(1, 1 << 20).map(lambda n: f"1/{n}"),
    st.tuples(st.integers(0, 1 << 20), st.integers(1, 1 << 20)).map(lambda ends: f"{min(ends)}-{max(ends)}"),
)


@given(st.sampled_from(NAMES), SAMPLES)
def test_a_name_with_a_sample_is_taken_apart(name: str, sample: str) -> None:
    assert split_choice(f"{name}:{sample}") == (name, sample)
    assert split_choice(f"{name}: {sample} ") == (name, sample)
    assert split_choice(name) == (name, "")


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
def test_each_probe_is_there_once_in_the_order_of_the_names(names: list[str]) -> None:
    assert [probe.name for probe in choose_probes(names)] == list(dict.fromkeys(names))


@given(st.text(max_size=30))
def test_whatever_is_written_is_understood_or_refused_in_words(text: str) -> None:
    try:
        name, sample = split_choice(text)
    except ProbeFileError as error:
        assert str(error).startswith(text)  # noqa: PT017
        return
    assert text.startswith(name)
    assert not sample or compact_sample(sample) == sample


def test_a_sample_of_ones_own_goes_before_that_of_all() -> None:
    chosen = choose_probes(["dmat:1/64", "gmem_sectors"], "1/4")
    assert [(probe.name, probe.sample) for probe in chosen] == [("dmat", "1/64"), ("gmem_sectors", "1/4")]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["gmem_sectors:none"], "not a sample of blocks"),
        (["block_sched:1/2"], "-p block_sched:1/2: block_sched needs every block"),
        (["dmat:1/2", "dmat:1/4"], "the run has a probe dmat already"),
        (["nothing"], r"no such file, and no probe of that name \(there are: survey, "),
        (["dmat, gmem_sectors"], "for several probes, repeat the option: -p dmat -p gmem_sectors$"),
        (["nothing:1/2"], "no such file, and no probe of that name"),
        (NAMES[: MAX_PROBES + 1], f"{MAX_PROBES + 1} probes: a run has at most {MAX_PROBES}"),
    ],
)
def test_impossible_choice_is_refused_with_a_reason(texts: list[str], words: str) -> None:
    with pytest.raises(ProbeFileError, match=words):
        choose_probes(texts)


def test_the_same_twice_is_one() -> None:
    assert [probe.name for probe in choose_probes(["dmat", "dmat"])] == ["dmat"]


def test_the_probes_of_all_sets_are_there() -> None:
    assert "survey" in built_in_sets()
    for probe in built_in_sets().values():
        assert len(choose_probes([probe.name])) == len(probe.choices) > 1
        assert probe.title


def test_a_set_of_ones_own_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('probes = ["dmat:1/8", "inst_mix"]\n')
    assert [(probe.name, probe.sample) for probe in choose_probes([str(path)])] == [("dmat", "1/8"), ("inst_mix", "")]
    path.write_text('probes = "dmat"\n')
    with pytest.raises(ProbeFileError, match="probes must be a list of names"):
        find_set(str(path))


def test_a_file_whose_name_has_a_colon_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine:1.toml"
    path.write_text((Path(str(choose_probes(["inst_mix"])[0].path))).read_text())
    (chosen,) = choose_probes([str(path)])
    assert (chosen.name, chosen.sample) == ("mine:1", "")
    with pytest.raises(ProbeFileError, match="each probe's name becomes a directory name; rename the file"):
        choose_probes([str(path), "dmat"])


def test_optional_maps_are_marked() -> None:
    warps, accesses, boxes = describe_probe(load_probe("dmat")).records
    assert "only in kernels that save a record (start u64" in boxes
    assert "only in kernels" not in warps + accesses


def test_facts_of_a_built_in_probe_are_kept_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run parses no probe before its program starts; other code, or another file, is parsed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    parsed: list[Path] = []

    def note(data: bytes, path: Path) -> Probe:
        parsed.append(path)
        return read_probe(data, path)

    monkeypatch.setattr(choices, "read_probe", note)
    first = choose_probes(["survey"])
    assert len(parsed) == len(first) > 1
    again = choose_probes(["survey"])
    assert again == first
    assert len(parsed) == len(first)
    assert [ProbeFacts.of(chosen.probe) for chosen in again] == [chosen.facts for chosen in first]
    parsed.clear()
    monkeypatch.setattr(choices, "__version__", "0")
    assert choose_probes(["survey"]) == first
    assert len(parsed) == len(first)


def test_a_built_in_probe_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process has the same probe without its parser; a damaged copy is made again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in NAMES:
        choices._probe_of.cache_clear()
        (chosen,) = choose_probes([name])
        before = set((tmp_path / "tui-probe" / "probes").iterdir())
        assert chosen.probe == load_probe(name)
        (kept,) = set((tmp_path / "tui-probe" / "probes").iterdir()) - before
        choices._probe_of.cache_clear()
        with monkeypatch.context() as parsing:
            parsing.setattr(choices, "read_probe", None)
            assert chosen.probe == load_probe(name)
        kept.write_bytes(kept.read_bytes()[:-9])
        choices._probe_of.cache_clear()
        assert chosen.probe == load_probe(name)


def test_facts_are_found_again_after_any_change_of_their_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that only finds facts and makes the reader imports our code from the directories that are compared."""
    program = """import sys
from tui_probe.probe_files.choices import choose_probes, code_stamps, reader_of
reader_of(choose_probes(["survey"]))
stamped = {stamp.partition(" ")[0].removeprefix("./") for stamp in code_stamps()}
own = [module for name, module in sys.modules.items() if name.startswith("tui_probe")]
files = [module.__file__.rpartition("/tui_probe/")[2] for module in own]
print(len(files) > 20, sorted(set(files) - stamped))
"""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    stored = set((tmp_path / "tui-probe" / "probes").iterdir())
    stamps = choices.code_stamps()
    monkeypatch.setattr(choices, "code_stamps", lambda: [*stamps[:-1], stamps[-1] + "0"])
    assert choose_probes(["survey"])
    assert set((tmp_path / "tui-probe" / "probes").iterdir()) > stored


def test_facts_of_old_code_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(choices, "_MAX_STORED", 2)
    for version in "abc":
        monkeypatch.setattr(choices, "__version__", version)
        choose_probes(["block_sched"])
    assert len(list((tmp_path / "tui-probe" / "probes").iterdir())) == 2


@pytest.mark.parametrize("text", ["", "[1]", "{}", "[true"])
def test_damaged_facts_are_found_again(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (before,) = choose_probes(["block_sched"])
    (kept,) = (tmp_path / "tui-probe" / "probes").iterdir()
    kept.write_text(text)
    assert choose_probes(["block_sched"]) == (before,)
    assert json.loads(kept.read_text()) == list(before.facts)


def test_reader_of_built_in_probes_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, several = choose_probes(["block_sched"]), choose_probes(["survey"])
    expected = [read_script(*(chosen.probe for chosen in probes)) for probes in (one, several)]
    assert [reader_of(probes) for probes in (one, several)] == expected
    monkeypatch.setattr(choices, "read_probe", None)
    assert [reader_of(probes) for probes in (one, several)] == expected


def test_reader_of_an_own_probe_is_made_in_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.toml"
    file.write_bytes(built_in_files()["block_sched"].read_bytes())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of the built-in sets"))  # stored once in a process
    choose_probes([str(file)])
    choices._probe_of.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    chosen = choose_probes([str(file)])
    assert reader_of(chosen) == read_script(chosen[0].probe)
    assert not (tmp_path / "cache").exists()
