"""Build a corpus of some hundred kernels in PTX, on a machine without a GPU.

    python -m tests.bench.ptx_corpus DIRECTORY

The kernels are those of CUB and Thrust, cuRAND's headers, CuPy, ggml, and some in numba-cuda and Triton, compiled for
sm_90 by what pip installs at fixed versions (``packages.py``), which makes the same files each time. DIRECTORY gets
``kernels/NAME.ptx``, one kernel each, and ``index.json``: versions, the toolkit that assembles them, and the kernels.
Needs the network, g++, 4 GB of disk and some minutes. ``python -m tests.bench.probe_cost --corpus DIRECTORY`` measures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.bench.ptx_corpus.compiled import ARCH, compile_all
from tests.bench.ptx_corpus.packages import REQUIREMENTS, SOURCES, Packages
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import prune_to_kernel
from tui_probe.ptx.tree import Module

OF_A_FILE = 12
"""Kernels taken of one file, spread over it: instances of a template are much alike."""
MOST_BYTES = 600_000
"""Of the PTX of a kernel: a larger one takes the assembler minutes."""
_NAMED = re.compile(r"[%$]?[A-Za-z_][\w$.]*|//.*")


def different(module: Module, seen: set[str]) -> dict[str, str]:
    """The kernels of a file that do something, and that none of those ``seen`` equals but for names."""
    texts = {}
    for entry in module.entries():
        text = prune_to_kernel(module, entry.name)
        digest = hashlib.sha256(anonymous(text).encode()).hexdigest()
        if digest not in seen and len(text) <= MOST_BYTES and re.search(r"\b(ld|st|atom|red)\.", text):
            seen.add(digest)
            texts[entry.name] = text
    return texts


def anonymous(text: str) -> str:
    """PTX in which each name that the text itself chose is a number in the order of appearance."""
    numbers: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        name = match[0]
        if name.startswith("//"):
            return ""
        return numbers.setdefault(name, f"_{len(numbers)}") if "_Z" in name or name[0] == "$" else name

    return _NAMED.sub(renamed, text)


def spread(kernels: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    """Some of the kernels of a file, with their numbers in it."""
    names = list(kernels)
    step = max(1, -(-len(names) // OF_A_FILE))
    return ((index, names[index], kernels[names[index]]) for index in range(0, len(names), step))


def collect(compiled: Path, folder: Path) -> list[dict[str, str]]:
    """Write a file for each kernel; the list of them."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.ptx"):
        old.unlink()
    seen: set[str] = set()
    listed = []
    for path in sorted(compiled.glob("*.ptx")):
        for index, name, text in spread(different(parse(path.read_text()), seen)):
            file = f"{path.stem}_{index:02}.ptx"
            (folder / file).write_text(text)
            listed.append({"file": file, "kernel": name, "sha256": hashlib.sha256(text.encode()).hexdigest()})
    return listed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    directory: Path = parser.parse_args().directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    packages = Packages(directory)
    compile_all(packages, directory / "compiled")
    kernels = collect(directory / "compiled", directory / "kernels")
    versions = [*REQUIREMENTS, SOURCES]
    index = {"arch": ARCH, "toolkit": str(packages.toolkit), "versions": versions, "kernels": kernels}
    (directory / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    print(f"{len(kernels)} kernels in {directory / 'kernels'}, from:", *versions, sep="\n  ")


if __name__ == "__main__":
    main()
