"""Builds of the hook that all test processes and later runs of the tests share.

    python3 -m tests.hook_builds

makes those with sanitizers, with any Python and without the packages of the tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.unity import write_groups

ROOT = Path(__file__).resolve().parent.parent
DAY = 24 * 60 * 60
SHELF = Path(tempfile.gettempdir()) / f"tui-probe-builds-{os.getuid()}"
SANITIZERS = ("address,undefined", "thread")

SHELF.mkdir(mode=0o700, exist_ok=True)


@contextlib.contextmanager
def built_once(name: str) -> Iterator[tuple[Path, bool]]:
    """A folder of this name, and whether it is new; its creator fills it by itself, and no one finds it half filled.

    Folders lie where later runs find them. Those that none has asked for since yesterday are removed.
    """
    place, filled = SHELF / name, SHELF / f"{name}.filled"
    with (SHELF / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_new = not filled.exists()
        if is_new:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        yield place, is_new
        filled.touch()
    for other in SHELF.glob("*.filled"):
        with (
            other.with_suffix(".lock").open("w") as lock,
            contextlib.suppress(BlockingIOError, FileNotFoundError),  # in use, or removed by another process
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - other.stat().st_mtime > DAY:
                other.unlink()
                shutil.rmtree(other.with_suffix(""), ignore_errors=True)


def digest_of_hook(*words: str) -> str:
    """A name for the content of all that the hook is built from, and for these words."""
    digest = hashlib.sha256(repr(words).encode())
    for path in sorted([*(ROOT / "hook").rglob("*"), ROOT / "tui_probe" / "reasons" / "reasons.def"]):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def build_hook(directory: Path, sanitizer: str = "", flags: str = "", targets: Sequence[str] = ("by_name",)) -> None:
    """The hook, and these targets, with warnings as errors. With a sanitizer many files are compiled as one."""
    grouped = directory / "groups.cmake"
    if sanitizer:
        directory.mkdir(exist_ok=True)
        write_groups(ROOT / "hook", grouped)
    options = [f"-DTUI_PROBE_SANITIZE={sanitizer}", "-DTUI_PROBE_WERROR=ON", f"-DCMAKE_C_FLAGS={flags}"]
    options.append(f"-DTUI_PROBE_GROUPS={grouped if sanitizer else ''}")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    subprocess.run(
        ["cmake", "-S", ROOT / "hook", "-B", directory, *generator, *options], check=True, capture_output=True
    )
    made = subprocess.run(
        ["cmake", "--build", directory, "--target", "hook", *targets], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout


def sanitized_natives(sanitizer: str) -> Path:
    """Return where the hook and the simulated driver are built with a sanitizer."""
    targets = ("by_name", "sim")
    with built_once(digest_of_hook(sanitizer, *targets)) as (place, is_new):
        if is_new:
            build_hook(place, sanitizer, targets=targets)
    return place


if __name__ == "__main__":
    for named in SANITIZERS:
        sanitized_natives(named)
