"""The cache of prepared kernels in doctor, and how it is emptied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_probe.cli import doctor
from tui_probe.cli.machine_checks import Item
from tui_probe.engine.cache import Cache, CacheUsage, default_cache_directory

from .conftest import Command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    directory = default_cache_directory()
    assert directory
    return directory


def test_an_empty_cache(folder: Path) -> None:
    assert doctor.cache_items() == [Item("cache", "ok", f"0 entries, 0 B of at most 1G, {folder}")]
    assert not folder.exists()


def test_cache_item_counts_entries_and_bytes(folder: Path) -> None:
    for key in "abc":
        Cache(folder).put(key, {"x": bytes(10_000)})
    (item,) = doctor.cache_items()
    assert item.state == "ok"
    assert item.found == f"3 entries, 30.2 kB of at most 1G, {folder}"
    assert "--clear-cache" in item.advice


def test_a_place_that_cannot_be_written(folder: Path) -> None:
    folder.parent.rmdir()
    folder.parent.touch()
    (item,) = doctor.cache_items()
    assert (item.state, item.found) == ("warn", f"{folder} is not writable")
    assert "XDG_CACHE_HOME" in item.advice


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    no_home = "no home directory, and XDG_CACHE_HOME is not set"
    (item,) = doctor.cache_items()
    assert (item.state, item.found) == ("warn", no_home)
    assert doctor.clear_cache() == f"nothing to remove: {no_home}"


def test_cache_of_others_is_not_used_with_a_reason(folder: Path) -> None:
    folder.parent.chmod(0o777)
    (item,) = doctor.cache_items()
    reason = f"{folder.parent} is not used: all users may write to the directory"
    assert (item.state, item.found) == ("warn", reason)
    assert doctor.clear_cache() == f"nothing to remove: {reason}"


def test_clearing(folder: Path, command: Command) -> None:
    Cache(folder).put("key", {"x": bytes(1000)})
    result = command("doctor", "--clear-cache")
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == f"[info] removed 1 entry, 1.06 kB, from {folder}\n"
    assert Cache(folder).usage() == CacheUsage(0, 0)
