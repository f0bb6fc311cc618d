"""Facts about probes that an earlier run found, in the user's cache: a run parses no built-in probe before it starts.

They are used only with the same code of tui-probe and the same probe file. A probe of the user is parsed in each run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from tui_probe.own_python import cache_home
from tui_probe.probe_files.loading import built_in_files, built_in_set_files, read_probe
from tui_probe.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.probe_model.probe import Probe

_CODE_FOLDERS: Final = (".", "engine", "engine/helper_values", "probe_files", "probe_model", "ptx", "reasons", "trace")
"""Directories of this package with all the code that finds a probe's facts and makes read.py."""
_Stored = TypeVar("_Stored")
_MAX_PARSED: Final = 16
"""Probes that stay in memory: those of one run."""
_KEY_BYTES: Final = 16
_MAX_STORED: Final = 256
"""Facts and texts that are kept; each is a file of a few kilobytes."""


class ProbeFacts(NamedTuple):
    """Facts about a probe that are needed before its program starts."""

    counts: bool
    weight: str
    every_block: bool
    reads_allocations: bool
    is_kept_by_host: bool
    needs_machine_code: bool

    @classmethod
    def of(cls, probe: Probe) -> ProbeFacts:
        return cls(
            probe.counts,
            probe.weight,
            probe.about.every_block,
            probe.reads_allocations,
            probe.is_kept_by_host,
            probe.needs_machine_code,
        )


def facts_of(data: bytes, path: Path) -> ProbeFacts:
    """Return the facts about a probe: of a built-in one those that the same code found in an earlier run.

    Raises ProbeFileError.
    """
    parts = [path.name.encode(), data]
    return stored_value(
        [path], parts, lambda: ProbeFacts.of(read_probe(data, path)), lambda stored: ProbeFacts(*json.loads(stored))
    )


@lru_cache(maxsize=_MAX_PARSED)
def parsed_probe(data: bytes, path: Path) -> Probe:
    """Return a probe, a built-in one as an earlier run parsed it: its snippets take 4 ms. Raises ProbeFileError.

    It is pickled, so reading it can run code: ``cache_home`` is a directory that no other user can write to, and is as
    trusted as the compiled modules in it. As JSON the probes of ``survey`` would take 4.6 ms in place of 2.8 ms.
    """
    import pickle

    def load(pickled: bytes) -> Probe:
        try:
            probe: Probe = pickle.loads(pickled)
        except Exception as error:
            raise ValueError("not a stored probe") from error
        return probe

    def dump(probe: Probe) -> bytes:
        return pickle.dumps(probe)

    parts = [b"probe", str(sys.implementation.cache_tag).encode(), str(path).encode("utf-8", "surrogateescape"), data]
    return stored_value([path], parts, lambda: read_probe(data, path), load, dump)


def _json_of(value: object) -> bytes:
    return json.dumps(value).encode()


def stored_value(
    files: Sequence[Path],
    parts: Sequence[bytes],
    make: Callable[[], _Stored],
    load: Callable[[bytes], _Stored],
    dump: Callable[[_Stored], bytes] = _json_of,
) -> _Stored:
    """Return what ``make`` makes of ``parts``, of built-in ``files`` only once per version of our code: ``load`` makes
    it of the bytes that ``dump`` made of it. Any change of a file of our code is another version.
    """
    are_built_in = set(files) <= {*built_in_files().values(), *built_in_set_files().values()}
    home = cache_home() if are_built_in else None
    if home is None:
        return make()
    sizes = "\n".join([__version__, *code_stamps(), *(str(len(part)) for part in parts)]).encode()
    key = hashlib.blake2b(b"".join([sizes, *parts]), digest_size=_KEY_BYTES).hexdigest()
    path = Path(home) / "probes" / key
    with suppress(OSError, ValueError, TypeError):
        return load(path.read_bytes())
    value = make()
    with suppress(OSError):  # the disk is full: the next run makes it again
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = path.with_name(f"{key}.{os.getpid()}")
        unfinished.write_bytes(dump(value))
        unfinished.replace(path)
        _remove_oldest(path.parent)
    return value


@cache
def code_stamps() -> list[str]:
    """Return the path, size in bytes and time of change in ns of each file that decides about a probe's facts."""
    package = Path(__file__).parents[1]
    stamps = []
    for folder in _CODE_FOLDERS:
        with os.scandir(package / folder) as entries:
            files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith((".py", ".def"))]
        stamps += [f"{folder}/{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in sorted(files)]
    return stamps


def _remove_oldest(folder: Path) -> None:
    """Keep the newest files of a directory. Raises OSError."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    for file in files[:-_MAX_STORED]:
        file.unlink(missing_ok=True)
