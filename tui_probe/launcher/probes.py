"""Which probe file a name stands for."""

from __future__ import annotations

from pathlib import Path

import tui_probe
from tui_probe.errors import ProbeFileError

SUFFIX = ".toml"


def probe_folders() -> list[Path]:
    """Where the built-in probes are: inside the installed package, or beside it in a source checkout."""
    roots = [Path(entry).absolute() for entry in tui_probe.__path__]
    return [place for root in roots for place in (root / "probes", root.parent / "probes") if place.is_dir()]


def find_probe(name: str) -> Path:
    """The absolute path of a probe file, named by its path or, for a built-in one, by its name alone.

    Raises ProbeFileError where there is none.
    """
    path = Path(name)
    if path.suffix or path.parent != Path():
        if path.is_file():
            return path.absolute()
        raise ProbeFileError(f"{name}: no such probe file")
    for folder in probe_folders():
        if (folder / f"{name}{SUFFIX}").is_file():
            return folder / f"{name}{SUFFIX}"
    known = sorted({path.stem for folder in probe_folders() for path in folder.glob(f"*{SUFFIX}")})
    raise ProbeFileError(f"no built-in probe is called {name}; there is {', '.join(known) or 'none'}")
