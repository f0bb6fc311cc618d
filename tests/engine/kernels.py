"""Small kernels, probes, and what tests do with them."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.ptx.corpus import FILES
from tui_probe.engine.insertion import insert_probe, with_matched_maps
from tui_probe.engine.kernel import Edits, Kernel, UnusedNames
from tui_probe.engine.module_variables import SharedVariables, share_variables
from tui_probe.probe_files.loading import load_probe, read_probe
from tui_probe.ptx.operands import tokens
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import INSERTED_MARK, REPLACED_MARK

if TYPE_CHECKING:
    from tui_probe.probe_model.probe import Probe

DATA = Path(__file__).parent.parent / "data" / "ptx"
CORPUS = FILES
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"

BLOCK_SCHED = load_probe("block_sched")

STORE = """
.visible .entry store(
	.param .u64 store_param_0
)
{
	.reg .b32 	%r<3>;
	.reg .b64 	%rd<4>;

	ld.param.u64 	%rd1, [store_param_0];
	mov.u32 	%r1, %tid.x;
	cvta.to.global.u64 	%rd2, %rd1;
	mul.wide.u32 	%rd3, %r1, 4;
	add.s64 	%rd3, %rd2, %rd3;
	st.global.u32 	[%rd3], %r1;
	ret;

}
"""


def entry(body: str, parameters: str = "", *, name: str = "kernel", module: str = "") -> str:
    """PTX with one kernel of that body."""
    return f"{HEADER}{module}\n.visible .entry {name}({parameters})\n{{\n{body}\n}}\n"


def toml_probe(text: str, name: str = "own") -> Probe:
    """A probe from the text of a file."""
    return read_probe(text.encode(), Path(f"{name}.toml"))


def counting_probe(position: str, before: str = "", after: str = "", more: str = "") -> Probe:
    """A probe at an instruction with a 64-bit register ``%n`` that is saved a thread at the end."""
    snippets = "".join(f'{key} = """\n{text}\n"""\n' for key, text in (("before", before), ("after", after)) if text)
    return toml_probe(
        f'''
[map.n]
level = "thread"
[map.n.regs]
n = "u64"
[probe.frame]
position = "kernel"
before = """
.reg .b64 %n;
mov.u64 %n, 0;
"""
after = "SAVE [ n ] {{%n}};"
[probe.count]
position = "{position}"
{more}
{snippets}
'''
    )


def probed(text: str, name: str = "kernel", probe: Probe = BLOCK_SCHED) -> str:
    """The probed PTX of one kernel of a module."""
    return probed_and_shared(text, name, probe)[0]


@lru_cache(maxsize=128)
def kernel_of(text: str, name: str) -> Kernel:
    """Return a kernel of a module: many probes are put into the same, and inserting one changes no kernel."""
    return Kernel.of(parse(text), name)


def probed_and_shared(text: str, name: str = "kernel", probe: Probe = BLOCK_SCHED) -> tuple[str, SharedVariables]:
    """The probed PTX, and the module variables that it shares."""
    return probed_with_sites(text, name, probe)[:2]


def matched_probe(text: str, name: str, probe: Probe) -> Probe:
    """The probe with the maps that a kernel has."""
    return with_matched_maps(kernel_of(text, name), probe)


def probed_with_sites(
    text: str, name: str = "kernel", probe: Probe = BLOCK_SCHED
) -> tuple[str, SharedVariables, dict[str, list[int]]]:
    """Besides these, the lines of the sites of each map that keeps them."""
    kernel = kernel_of(text, name)
    probe = with_matched_maps(kernel, probe)
    names, edits = UnusedNames(kernel.pruned), Edits(kernel.module.source)
    shared = share_variables(kernel, names, edits)
    sites = insert_probe(kernel, probe, names, edits, shared).sites
    return kernel.apply_edits(edits), shared, sites


def inserted(text: str) -> list[str]:
    """The inserted lines, without their marks."""
    return [
        line.partition(INSERTED_MARK)[0].strip()
        for line in text.splitlines()
        if INSERTED_MARK in line and REPLACED_MARK not in line
    ]


def without_insertions(text: str) -> str:
    """Probed PTX as it was before: no inserted lines, no added parameters, replaced instructions as they were."""
    lines = []
    for line in text.splitlines():
        if REPLACED_MARK in line:
            lines.append(line.partition(REPLACED_MARK)[2])
        elif INSERTED_MARK not in line:
            lines.append(line)
    return re.sub(r",?\s*\.param \.u64 tp_(?:map|cap|launch|allocations|variable|state)_[\w$]*", "", "\n".join(lines))


def words(text: str) -> list[str]:
    """The tokens, without the parentheses that a kernel without parameters may lack."""
    return [token for token in tokens(text) if token not in "()"]
