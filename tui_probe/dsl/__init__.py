"""The Python tracing language: a probe as restricted Python, compiled to a probe file's tables and never run.

A file holds, in any order:

    from tui_probe.dsl import Map, probe, clock32, cuid, u32, u64     for editors; passed over

    CALLBACK = "lifetime"                    the analysis
    LIMIT = 4 * 8                            a constant

    @Map(level="warp", type="array", size=16, cap=1)
    class lifetime:                          where records are kept
        start: u64
        elapsed: u32

    begin: u32 = 0                           a register of each thread, set to this at the kernel's entry

    @probe(pos="kernel", level="warp", before=True)
    def enter() -> None:                     what runs at a position
        global begin                         optional
        begin = clock32()

A map with ``level="site"`` has one record per probed instruction, block or loop, to which all warps add:

    @Map(level="site")
    class loads:
        executed: u64
        loaded: u64

    @probe(pos="ld.global", before=True)
    def load():
        loads.add(1, bytes)                  each lane adds, so these are sums over threads

Functions hold assignments, ``if``/``elif``/``else``, ``for i in range(…)`` of constants, ``pass``, ``X.save(…)``,
``X.add(…)`` and ``X.locate()``. Where they run, ``pos`` says:

    "kernel"                   the entry of the kernel with before=True, else every exit
    "ld.global:st.global"      instructions of these opcodes that have all these modifiers; "ld.!param" has not that one
    "mbarrier.try_wait+"       the same, but a loop that does nothing but try the instruction again is one
    "block", "block.load"      the start of each basic block, or of each with instructions of a class (before=True)
    "loop"                     the first block of each loop, once per iteration (before=True)

What they can read: ``clock() clock32() time() cuid() lane() warp()``; at an instruction ``addr bytes out in1 in2 in3
multiply_adds line``; at a block ``line``, and ``instructions``, the number of those of its class; ``issued``, that in
the machine.

The first line of the module's docstring is its title; lines ``Measures: …``, ``Unit: …``, ``Cost: …`` and
``Checked: …`` are what the list of probes shows.

Numbers are unsigned integers of 64 bits: ``+ - * // % << >> & | ^ ~`` give the result mod 2**64, ``-1`` is 2**64 - 1,
and comparisons are unsigned. A variable or field of type ``u32`` keeps the low 32 bits of what is stored in it; read,
it is that number. A local without a declared type is u64. The compiler computes in 32 bits wherever that cannot be
told from 64; so ``u32`` costs a register less and never changes what an expression means. ``//`` and ``%`` take tens
of instructions in 32 bits and about a hundred in 64 (a power of two takes one); by 0 they give no defined value.
Shifts clamp as in PTX: by 64 or more they give 0. A comparison, ``and``, ``or`` and ``not`` give 1 or 0; any number
but 0 is true; both sides of ``and``, ``or`` and ``if … else …`` expressions are computed.

``if`` and ``for`` become branches that stay inside the probe. Loops have constant bounds and at most 1024 turns,
those inside each other together. Functions at one position run in the order of the file; at an
instruction under a predicate they run in the lanes in which it is executed.
"""

from tui_probe.dsl.language import (
    Map,
    SavedMap,
    addr,
    bytes,  # noqa: A004 - the language's own word
    clock,
    clock32,
    cuid,
    in1,
    in2,
    in3,
    instructions,
    issued,
    lane,
    line,
    multiply_adds,
    out,
    probe,
    time,
    u32,
    u64,
    warp,
)

__all__ = [
    "Map",
    "SavedMap",
    "addr",
    "bytes",
    "clock",
    "clock32",
    "cuid",
    "in1",
    "in2",
    "in3",
    "instructions",
    "issued",
    "lane",
    "line",
    "multiply_adds",
    "out",
    "probe",
    "time",
    "u32",
    "u64",
    "warp",
]
