"""Code of a probe is in its folder only: no other module names a probe."""

from __future__ import annotations

import re
from pathlib import Path

import tui_probe
from tui_probe.probe_files.loading import built_in_files

PACKAGE = Path(tui_probe.__file__).parent
COMMON_WORDS = {"phases"}
"""Names of probes that are words of PTX and of probe files, too: an mbarrier has phases, ``[phases]`` are lines."""


def test_no_module_names_a_built_in_probe() -> None:
    """In no string, identifier or comment, not as a part of a longer name, nor in capitals.

    An evaluation is of probes that it names; ``.dmat`` is how existing systems call files of theirs.
    """
    names = sorted(set(built_in_files()) - COMMON_WORDS, key=len, reverse=True)
    assert len(names) > 10
    word = re.compile(rf"(?<![a-z0-9.])(?:{'|'.join(names)})(?![a-z0-9])", re.IGNORECASE)
    imports = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0]
        not in ("probes", "evals")  # where their folders are once the package is installed
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if word.search(line)
    ]
    assert not imports, "\n".join(imports)
