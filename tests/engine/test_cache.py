"""The cache on disk: what is put is got, whole or not at all, from several processes, within its limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.engine.cache import Cache, CacheUsage, default_cache_directory, digest

ROOT = Path(__file__).parents[2]
FILES = st.dictionaries(st.text(max_size=20), st.binary(max_size=200), max_size=5)
ENTRY_OF_100 = {"x": bytes(100)}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "a" / "b")


def keys(cache: Cache) -> set[str]:
    return {path.stem for path in cache.folder.glob("*.entry")}


@given(FILES, FILES)
def test_newest_entry_is_returned(
    tmp_path_factory: pytest.TempPathFactory, first: dict[str, bytes], last: dict[str, bytes]
) -> None:
    cache = Cache(tmp_path_factory.getbasetemp() / "put_and_get")
    cache.put("key", first)
    cache.put("key", last)
    assert cache.get("key") == last
    assert keys(cache) == {"key"}


@given(st.data())
def test_damage_counts_as_absent_and_is_removed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    cache = Cache(tmp_path_factory.getbasetemp() / "damage")
    cache.put("key", {"a": b"content", "b": b""})
    path = cache.path("key")
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content) - 1))
    flipped = bytes([content[cut] ^ data.draw(st.integers(1, 255))])
    path.write_bytes(
        data.draw(st.sampled_from([content[:cut], content[:cut] + flipped + content[cut + 1 :], content + b"x"]))
    )
    assert cache.get("key") is None
    assert not path.exists()
    assert cache.get("key") is None


def test_nothing_is_there_at_first(cache: Cache) -> None:
    assert cache.get("key") is None
    assert cache.usage() == CacheUsage(0, 0)
    assert cache.clear() == CacheUsage(0, 0)
    cache.trim()
    assert not cache.folder.exists()


def test_the_entries_used_longest_ago_go_first(cache: Cache) -> None:
    for number, key in enumerate("abc"):
        cache.put(key, ENTRY_OF_100)
        os.utime(cache.path(key), (number, number))
    cache.get("a")
    size = cache.usage().size // 3
    Cache(cache.folder, limit=2 * size).trim()
    assert keys(cache) == {"a", "c"}


def test_a_folder_that_did_not_change_is_not_trimmed_again(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[Cache] = []
    monkeypatch.setattr(Cache, "trim", lambda self: trims.append(self))
    cache.trim_if_changed()
    assert not trims
    for key in "ab":
        cache.put(key, ENTRY_OF_100)
        os.utime(cache.folder, ns=(0, ord(key)))
        cache.trim_if_changed()
        cache.get(key)
        cache.trim_if_changed()
    assert len(trims) == 2
    cache.path("a").unlink()
    os.utime(cache.folder, ns=(0, 1))
    cache.trim_if_changed()
    assert len(trims) == 3


def test_putting_keeps_the_limit(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10_000)
    for number in range(100):
        cache.put(f"{number:03}", {"x": bytes(1000)})
        assert cache.usage().size <= 10_000 + 10_000 // 16 + 2000
    assert "099" in keys(cache)


def test_leftovers_of_a_killed_writer_are_removed(cache: Cache) -> None:
    cache.put("key", ENTRY_OF_100)
    fresh, old = cache.folder / "1-0.unfinished", cache.folder / "2-0.unfinished"
    fresh.touch()
    old.touch()
    os.utime(old, (0, 0))
    cache.trim()
    assert fresh.exists()
    assert not old.exists()


def test_clearing(cache: Cache) -> None:
    cache.put("a", ENTRY_OF_100)
    cache.put("b", ENTRY_OF_100)
    (cache.folder / "someone's").touch()
    assert cache.clear().entries == 2
    assert [path.name for path in cache.folder.iterdir()] == ["someone's"]


def test_the_folder_is_the_users_own(cache: Cache) -> None:
    cache.put("a", ENTRY_OF_100)
    assert cache.folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "cache")
    with pytest.raises(OSError, match="Not a directory"):
        cache.put("key", ENTRY_OF_100)
    assert cache.get("key") is None
    assert cache.usage() == CacheUsage(0, 0)


def test_a_full_disk_leaves_nothing_behind(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("key", ENTRY_OF_100)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        cache.put("other", ENTRY_OF_100)
    assert [path.name for path in cache.folder.iterdir()] == ["key.entry"]


WRITER = """
import sys
from pathlib import Path
from tui_probe.engine.cache import Cache
cache = Cache(Path(sys.argv[1]), limit=20_000)
for number in range(200):
    key = f"{number % 7}"
    files = cache.get(key)
    assert files is None or set(files["x"]) == {number % 7}, files
    cache.put(key, {"x": bytes([number % 7]) * 4000})
"""


def test_several_processes_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    writers = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for writer in writers:
        assert writer.communicate()[1] == ""
        assert writer.returncode == 0
    assert not list(tmp_path.glob("*.unfinished"))


def test_cache_location(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_directory() == tmp_path / "tui-probe" / "kernels"
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert default_cache_directory() == tmp_path / "home" / ".cache" / "tui-probe" / "kernels"


def test_no_home_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert default_cache_directory() is None


@given(st.lists(st.binary(max_size=8)), st.lists(st.binary(max_size=8)))
def test_digests_tell_apart(first: list[bytes], second: list[bytes]) -> None:
    assert (digest(*first) == digest(*second)) == (first == second)
