"""Machine instructions that ptxas makes of PTX instructions that it expands, for numbers of the usual size.

    python -m tests.bench.expansions [--arch 80 90 100]

For each a kernel that loads operands, computes, and stores, and the same that stores an operand: the difference of the
instructions that a thread executes from the entry to the exit. Where a branch leads to a call of a slow path, the way
past it is taken; a call that all threads make is followed. ``tui_probe/ptx/instruction_facts.py`` has these numbers.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.snippet_ptx import ptx_version
from tui_probe.errors import ToolchainError
from tui_probe.sass.flow import BRA_OPERATION, basic_blocks
from tui_probe.sass.operations import operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import WORD_BYTES, branch_target

if TYPE_CHECKING:
    from collections.abc import Iterable

ARCHITECTURES = (80, 90, 100)
ONE_OPERAND = (
    "sqrt.approx.ftz.f32", "rcp.approx.ftz.f32", "sqrt.rn.f32", "sqrt.rn.ftz.f32", "sqrt.approx.f32", "rcp.rn.f32",
    "rcp.rn.ftz.f32", "rcp.approx.f32", "rsqrt.approx.f32", "rsqrt.approx.ftz.f32", "sin.approx.f32",
    "cos.approx.f32", "ex2.approx.f32", "ex2.approx.ftz.f32", "lg2.approx.f32", "lg2.approx.ftz.f32",
    "tanh.approx.f32", "rcp.rn.f64", "sqrt.rn.f64", "neg.f32", "abs.f32", "popc.b32", "clz.b32", "brev.b32",
    "not.b32", "rcp.approx.ftz.f64", "rsqrt.approx.f64", "not.b64", "popc.b64", "clz.b64", "neg.s64", "abs.s64",
)  # fmt: skip
TWO_OPERANDS = (
    "div.rn.f32", "div.full.f32", "div.approx.f32", "div.rn.f64", "div.s32", "div.u32", "rem.s32", "rem.u32",
    "div.s64", "div.u64", "rem.s64", "rem.u64", "mul.lo.s64", "mul.lo.s32", "mul.hi.u32", "mul.hi.u64", "add.s64",
    "sub.s64", "and.b64", "xor.b64", "min.s64", "max.u64", "add.f32", "mul.f32", "add.f64", "min.f32", "max.f64",
    "min.f16x2",
)  # fmt: skip
HEAD = """.version {version}
.target sm_{arch}
.address_size 64
.visible .entry k(.param .u64 at)
{{
	.reg .b64 %a; .reg .b32 %t;
	.reg .{type} %x, %y, %z;
	ld.param.u64 %a, [at]; cvta.to.global.u64 %a, %a;
	ld.volatile.global.{type} %x, [%a]; ld.volatile.global.{type} %y, [%a+8];
	{operation}
	st.volatile.global.{type} [%a+16], %z; st.volatile.global.{type} [%a+24], %x; st.volatile.global.{type} [%a+32], %y;
	ret;
}}
"""


def executed(target: GraftTarget) -> int:
    """The instructions from the entry to the exit on the way past calls."""
    blocks = {block.start: block for block in basic_blocks(target)}
    calls = {
        start
        for start, block in blocks.items()
        if any(operation_name(target.words[at], target.arch) == "CALL" for at in block)
    }
    at, count, seen, back = 0, 0, set[int](), list[int]()
    while at in blocks and at not in seen:
        seen.add(at)
        block = blocks[at]
        last = target.words[block[-1]]
        code = [target.words[place] for place in block]
        count += sum(operation_name(word, target.arch) not in ("NOP", "BSYNC") for word in code)
        following = block.stop
        if operation_name(last, target.arch) == "EXIT" and last.is_unconditional:
            break
        led = branch_target(target.arch, block[-1] * WORD_BYTES, last) // WORD_BYTES
        if operation_name(last, target.arch) == "RET" and back:
            following = back.pop()
        elif operation_name(last, target.arch) == "CALL":
            back.append(following)
            following = led
        elif last.operation == BRA_OPERATION:
            following = led if last.is_unconditional or (following in calls and led not in calls) else following
        at = following
    return count


def assembled(operation: str, kind: str, arch: int) -> int | None:
    """Count the executed instructions of a kernel with an operation; None if the architecture does not have it."""
    text = HEAD.format(version=ptx_version(arch), arch=arch, type=kind, operation=operation)
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "k.ptx", Path(folder) / "k.bin"
        source.write_text(text)
        try:
            Assembler().assemble(source, binary, f"sm_{arch}", "k")
        except ToolchainError:
            return None
        return executed(GraftTarget.from_cubin(Cubin.read(binary.read_bytes()), "k"))


def numbers(operation: str, arch: int, operands: int) -> int | None:
    """The machine instructions of one of PTX."""
    type_ = operation.rpartition(".")[2]
    kind = {"f16x2": "b32"}.get(type_, type_)
    result = (
        f"{operation} {'%t' if operation in ('popc.b64', 'clz.b64') else '%z'}, {', '.join(('%x', '%y')[:operands])};"
    )
    if "%t" in result:
        result += " cvt.u64.u32 %z, %t;"
    whole, without = assembled(result, kind, arch), assembled(f"mov.{kind} %z, %x;", kind, arch)
    return None if whole is None or without is None else whole - without


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", type=int, nargs="*", default=ARCHITECTURES)
    options = parser.parse_args(None if arguments is None else list(arguments))
    print(f"{'':24}", *(f"sm_{arch}".rjust(7) for arch in options.arch))
    for operations, operands in ((ONE_OPERAND, 1), (TWO_OPERANDS, 2)):
        for operation in operations:
            counts = [numbers(operation, arch, operands) for arch in options.arch]
            print(f"{operation:24}", *(("–" if count is None else str(count)).rjust(7) for count in counts), flush=True)


if __name__ == "__main__":
    main()
