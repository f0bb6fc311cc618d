"""Contents of the PTX corpus, and the effect of the built-in probes on it.

    python -m tests.bench.corpus [--probes [NAME …]]

Without options: bytes, kernels, lines, instructions and opcode families of each file. ``--probes`` puts each probe
(or those named) into each kernel and assembles it: how many kernels took it, and why others did not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.bench.assembling import assemble
from tests.engine.kernels import probed
from tests.ptx.corpus import FILES, CorpusFile, instructions
from tui_probe.errors import ToolchainError, UnsupportedKernelError
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Module


@dataclass(frozen=True)
class Contents:
    """Contents of one file. ``families`` are its opcodes, without their modifiers."""

    name: str
    bytes: int
    kernels: int
    lines: int
    instructions: int
    families: frozenset[str]
    forms: frozenset[str]

    @classmethod
    def of(cls, file: CorpusFile) -> Contents:
        source = file.read_text()
        module = parse(source)
        count = instructions(module)
        return cls(
            name=file.name,
            bytes=file.path.stat().st_size,
            kernels=len(module.entries()),
            lines=source.count("\n"),
            instructions=len(count),
            families=frozenset(instruction.opcode for instruction in count),
            forms=frozenset(".".join((instruction.opcode, *instruction.modifiers)) for instruction in count),
        )


def contents() -> list[Contents]:
    """Contents of each file of the corpus."""
    return [Contents.of(file) for file in FILES]


def summary(files: list[Contents]) -> str:
    """The whole corpus in one line."""
    families = frozenset[str]().union(*(file.families for file in files))
    forms = frozenset[str]().union(*(file.forms for file in files))
    return (
        f"PTX corpus: {len(files)} files ({sum(file.bytes for file in files) // 1000} KB), "
        f"{sum(file.kernels for file in files)} kernels, {sum(file.lines for file in files)} lines, "
        f"{sum(file.instructions for file in files)} instructions, {len(families)} opcode families, {len(forms)} forms"
    )


def show(files: list[Contents]) -> None:
    """Print a table of the files, and the summary."""
    print(f"{'file':<36}{'bytes':>8}{'kernels':>9}{'lines':>7}{'instructions':>14}{'families':>10}")
    for file in files:
        print(
            f"{file.name:<36}{file.bytes:>8}{file.kernels:>9}{file.lines:>7}{file.instructions:>14}"
            f"{len(file.families):>10}"
        )
    print(summary(files))


def show_probes(names: list[str]) -> None:
    """Print, for each probe, how many kernels assembled with it, and why others were refused."""
    modules = [parse(file.read_text()) for file in FILES]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for name in names:
            jobs = [(name, module, entry.name) for module in modules for entry in module.entries()]
            outcomes = Counter(pool.map(lambda job: outcome(Path(folder), *job), jobs))
            print(f"{name}: {outcomes.pop('', 0)} of {len(jobs)} kernels assembled")
            for reason, number in outcomes.most_common():
                print(f"    {number} {reason}")


def outcome(folder: Path, name: str, module: Module, entry: str) -> str:
    """ "" if the kernel assembles with the probe, or why it does not."""
    try:
        text = probed(module.source, entry, load_probe(name))
        assemble(text, entry, folder)
    except UnsupportedKernelError as error:
        return f"refused: {error}"
    except ToolchainError as error:
        return f"not assembled: {str(error).partition(chr(10))[0]}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probes", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.probes is None:
        show(contents())
        return
    unknown = set(options.probes) - set(built_in_names())
    if unknown:
        sys.exit(f"no such probe: {', '.join(sorted(unknown))}; there are {', '.join(built_in_names())}")
    show_probes(options.probes or list(built_in_names()))


if __name__ == "__main__":
    main()
