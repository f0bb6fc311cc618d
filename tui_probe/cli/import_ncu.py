"""``tui-probe import ncu``: files of Nsight Compute, beside traces of ours."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.nsight.analysis.sectors import ELEMENT_BYTES, Tensor
from tui_probe.nsight.pages.choices import NCU_PAGES

from .import_command import add_output_options, opened, write_page
from .reading import Reading

if TYPE_CHECKING:
    from tui_probe.nsight.analysis.chosen_launches import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Files, the page, and what is known of the program."""
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="CSV files that ncu wrote: details, raw, or summary pages"
    )
    parser.add_argument("--page", choices=NCU_PAGES, default="kernels", help="what to show; default %(default)s")
    parser.add_argument(
        "--trace", action="append", default=[], metavar="TRACE[:KERNEL]",
        help="a trace of the same program with a counting probe, for the pages sectors and critical; may be repeated",
    )  # fmt: skip
    add_plan_options(parser)
    add_tensor_options(parser)
    add_output_options(parser)


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """How the program measures."""
    plan = parser.add_argument_group("which launches count")
    plan.add_argument(
        "--warmup", type=count, metavar="W", help="warm-up iterations before the measured ones, which are dropped"
    )
    plan.add_argument(
        "--runs",
        type=positive,
        metavar="R",
        help="measured iterations; without W and R, W + R is found in the launches",
    )
    plan.add_argument(
        "--expect", action="append", default=[], metavar="NAME", help="warn if no kernel with NAME in its name ran"
    )


def add_tensor_options(parser: argparse.ArgumentParser) -> None:
    """The tensor that a kernel should write."""
    tensor = parser.add_argument_group("the tensor to compare sectors with")
    tensor.add_argument("--seq-len", type=positive, metavar="N", help="sequence length")
    tensor.add_argument("--head-dim", type=positive, metavar="N", help="head dimension")
    tensor.add_argument("--dtype", choices=ELEMENT_BYTES, default="fp16", help="type; default %(default)s")
    tensor.add_argument("--heads", type=positive, default=1, metavar="N", help="heads; default %(default)s")
    tensor.add_argument("--batch", type=positive, default=1, metavar="N", help="batch; default %(default)s")


def run(arguments: argparse.Namespace) -> int:
    """Write one page of the files and traces."""
    from tui_probe.nsight.importers.ncu import read_ncu
    from tui_probe.nsight.pages.ncu_report import Sources, ncu_page

    if not arguments.files and not arguments.trace:
        arguments.refuse("which files? tui-probe import ncu FILE.csv...")
    plan, tensor = plan_of(arguments), tensor_of(arguments)
    with Reading() as reading:
        table = read_ncu(arguments.files, reading) if arguments.files else None
    sources = Sources(table, opened(arguments.trace), plan, tensor)
    return write_page(ncu_page(arguments.page, sources), arguments)


def plan_of(arguments: argparse.Namespace) -> Plan:
    """What the options say of the program."""
    from tui_probe.nsight.analysis.chosen_launches import Plan

    return Plan(arguments.warmup, arguments.runs, tuple(arguments.expect))


def tensor_of(arguments: argparse.Namespace) -> Tensor | None:
    """The tensor that the options describe, if they do."""
    if arguments.seq_len is None and arguments.head_dim is None:
        return None
    if arguments.seq_len is None or arguments.head_dim is None:
        arguments.refuse("a tensor has both: give --seq-len and --head-dim")
    return Tensor(arguments.seq_len, arguments.head_dim, arguments.dtype, arguments.heads, arguments.batch)


def count(word: str) -> int:
    """A number of iterations."""
    return _number(word, 0)


def positive(word: str) -> int:
    """A number of at least one."""
    return _number(word, 1)


def _number(word: str, least: int) -> int:
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 10 else -1
    if number < least:
        raise argparse.ArgumentTypeError(f"{word}: a whole number of at least {least} was expected")
    return number
