"""Facts about probes in the user's cache: used only by the same code, for the same file of a probe."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tui_probe.probe_files import stored_facts
from tui_probe.probe_files.choices import choose_probes, reader_of
from tui_probe.probe_files.loading import built_in_files, built_in_names, load_probe, read_probe
from tui_probe.probe_files.stored_facts import ProbeFacts
from tui_probe.probe_model.probe import Probe
from tui_probe.probe_model.read_script import read_script


def test_facts_of_a_built_in_probe_are_kept_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run parses no probe before its program starts; other code, or another file, is parsed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    parsed: list[Path] = []

    def note(data: bytes, path: Path) -> Probe:
        parsed.append(path)
        return read_probe(data, path)

    monkeypatch.setattr(stored_facts, "read_probe", note)
    first = choose_probes(["survey"])
    assert len(parsed) == len(first) > 1
    again = choose_probes(["survey"])
    assert again == first
    assert len(parsed) == len(first)
    assert [ProbeFacts.of(chosen.probe) for chosen in again] == [chosen.facts for chosen in first]
    parsed.clear()
    monkeypatch.setattr(stored_facts, "__version__", "0")
    assert choose_probes(["survey"]) == first
    assert len(parsed) == len(first)


def test_a_built_in_probe_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process has the same probe without its parser; a damaged copy is made again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in built_in_names():
        stored_facts.parsed_probe.cache_clear()
        (chosen,) = choose_probes([name])
        before = set((tmp_path / "tui-probe" / "probes").iterdir())
        assert chosen.probe == load_probe(name)
        (kept,) = set((tmp_path / "tui-probe" / "probes").iterdir()) - before
        stored_facts.parsed_probe.cache_clear()
        with monkeypatch.context() as parsing:
            parsing.setattr(stored_facts, "read_probe", None)
            assert chosen.probe == load_probe(name)
        kept.write_bytes(kept.read_bytes()[:-9])
        stored_facts.parsed_probe.cache_clear()
        assert chosen.probe == load_probe(name)


class _Planted:
    """Object whose pickle makes a directory where it is read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.directory),)


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_pickles_are_read_only_from_a_cache_of_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """In a cache that all users may write to, another user could replace a probe by a pickle that runs code."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "tui-probe"
    stored_facts.parsed_probe.cache_clear()
    (chosen,) = choose_probes(["block_sched"])
    facts = set((cache / "probes").iterdir())
    assert chosen.probe
    (pickled,) = set((cache / "probes").iterdir()) - facts
    pickled.write_bytes(pickle.dumps(_Planted(tmp_path / "planted")))
    cache.chmod(mode)
    stored_facts.parsed_probe.cache_clear()
    _ = chosen.probe
    stored_facts.parsed_probe.cache_clear()
    assert (tmp_path / "planted").exists() == (mode == 0o700)


def test_facts_are_found_again_after_any_change_of_their_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that only finds facts and makes the reader imports our code from the directories that are compared."""
    program = """import sys
from tui_probe.probe_files.choices import choose_probes, reader_of
from tui_probe.probe_files.stored_facts import code_stamps
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
    stamps = stored_facts.code_stamps()
    monkeypatch.setattr(stored_facts, "code_stamps", lambda: [*stamps[:-1], stamps[-1] + "0"])
    assert choose_probes(["survey"])
    assert set((tmp_path / "tui-probe" / "probes").iterdir()) > stored


def test_facts_of_old_code_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(stored_facts, "_MAX_STORED", 2)
    for version in "abc":
        monkeypatch.setattr(stored_facts, "__version__", version)
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
    monkeypatch.setattr(stored_facts, "read_probe", None)
    assert [reader_of(probes) for probes in (one, several)] == expected


def test_reader_of_an_own_probe_is_made_in_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.toml"
    file.write_bytes(built_in_files()["block_sched"].read_bytes())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of the built-in sets"))  # stored once in a process
    choose_probes([str(file)])
    stored_facts.parsed_probe.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    chosen = choose_probes([str(file)])
    assert reader_of(chosen) == read_script(chosen[0].probe)
    assert not (tmp_path / "cache").exists()
