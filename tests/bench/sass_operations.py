"""Operations of machine code that are not known, or have another name: of the files named, nvdisasm says what they are.

    python -m tests.bench.sass_operations [--arch 90 …] [--most N] FILE …

Files are libraries, executables, fatbins and cubins. ``--most`` cubins of each file and architecture are looked at.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.grafts import of_file
from tui_probe.binaries.cubin import CODE_PREFIX
from tui_probe.sass.operations import operation_name
from tui_probe.sass.words import WORD_BYTES, Word, code_of, words_of
from tui_probe.toolchain import find_disassembler

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.binaries.cubin import Cubin

ARCHITECTURES = (80, 86, 90, 100, 120)


def examples(cubins: Iterable[Cubin]) -> dict[int, Word]:
    """A word of each opcode, with its form."""
    words: dict[int, Word] = {}
    for cubin in cubins:
        for section in cubin.sections:
            if section.name.startswith(CODE_PREFIX):
                content = cubin.content(section)
                words |= {word.opcode: word for word in words_of(content[: len(content) // WORD_BYTES * WORD_BYTES])}
    return words


def named(words: list[Word], arch: int) -> list[str]:
    """The names that nvdisasm gives words, up to the first dot."""
    tool = find_disassembler()
    if tool is None:
        sys.exit("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        Path(file.name).write_bytes(code_of(words))
        command = [str(tool.path), "-b", f"SM{arch}", "-c", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(\w+)", done.stdout)


def unlike(cubins: Iterable[Cubin], arch: int) -> list[tuple[Word, str, str]]:
    """Words whose names differ: ours, "" for none, and that of nvdisasm."""
    code = [word for _, word in sorted(examples(cubins).items())]
    pairs = [(word, operation_name(word, arch), name) for word, name in zip(code, named(code, arch), strict=True)]
    return [pair for pair in pairs if not pair[1] or pair[1] not in pair[2]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--arch", type=int, nargs="*", default=ARCHITECTURES)
    parser.add_argument("--most", type=int, default=100)
    options = parser.parse_args()
    for path in options.files:
        for arch in options.arch:
            cubins = of_file(path, [arch])[: options.most]
            for word, ours, theirs in unlike(cubins, arch) if cubins else ():
                print(f"{path.name} sm_{arch}: operation {word.operation:#05x} is {theirs}, not {ours or 'known'}")


if __name__ == "__main__":
    main()
