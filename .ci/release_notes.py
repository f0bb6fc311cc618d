"""Prints the section of CHANGELOG.md for a release.

    python .ci/release_notes.py v1.0.0

Ends with status 1 unless the tag is "v" and the version in pyproject.toml, and the first section is that of it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def project_version(root: Path) -> str:
    version: str = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version


def notes(root: Path, tag: str) -> str:
    """Return the text below the heading of this release. Raises ValueError where tag, version and heading differ."""
    version = project_version(root)
    if tag != f"v{version}":
        raise ValueError(f"{tag}: not the tag of version {version}; tag the commit v{version}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    _, heading, *sections = re.split(r"^## (.*)$", changelog, flags=re.MULTILINE)
    if heading.split()[0].rstrip(":") != version:
        raise ValueError(f"CHANGELOG.md begins with {heading!r}; move its entries below a heading of {version}")
    return sections[0].strip()


def main() -> int:
    if len(sys.argv) != 2:
        print(f"usage: python .ci/release_notes.py v{project_version(ROOT)}", file=sys.stderr)
        return 2
    try:
        print(notes(ROOT, sys.argv[1]))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
