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

The names below are for editors and type checkers: the compiler passes over ``from tui_probe.dsl import …``. Executing a
probe file as a program ends in a ProbeFileError that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Protocol, TypeAlias

from tui_probe.errors import ProbeFileError

if TYPE_CHECKING:
    from collections.abc import Callable

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

u64: TypeAlias = int
"""An unsigned number of 64 bits. ``u64(x)`` is ``x``."""

u32: TypeAlias = int
"""An unsigned number of 32 bits: what is stored keeps its low 32 bits. ``u32(x)`` is ``x % 2**32``."""

addr: Final[int] = 0
"""Address in global memory (or else in the first memory operand) of the probed instruction, for this thread."""

bytes: Final[int] = 0  # noqa: A001 - the language's own word
"""Bytes that the probed instruction moves for this thread, all elements of a vector together."""

multiply_adds: Final[int] = 0
"""Multiply-adds of a matrix instruction (``mma``, ``wmma``, ``wgmma``), this thread's share of its warp's. 32 bits."""

instructions: Final[int] = 0
"""Instructions of the class in the basic block, at ``pos="block.load"``. 32 bits."""

issued: Final[int] = 0
"""SASS instructions that those of the class come to, at ``pos="block.load"``. 32 bits."""

line: Final[int] = 0
"""The line of ``pruned.ptx`` on which the probed instruction stands, or the first one of a block or loop. 32 bits."""

out: Final[int] = 0
"""First operand of the probed instruction: a register, which has no value before an instruction that writes it, or a
memory operand, which is its address.
"""

in1: Final[int] = 0
"""Second operand of the probed instruction. The bits, if it is a floating-point number."""

in2: Final[int] = 0
"""Third operand of the probed instruction."""

in3: Final[int] = 0
"""Fourth operand of the probed instruction."""


class SavedMap(Protocol):
    """Decorator object that ``@Map`` returns for a class."""

    def save(self, *values: int) -> None:
        """Keep one record: a value for each field, in the order of the class.

        With ``level="warp"``, the lowest active lane saves the record of its warp. Values that read no clock are
        computed only in lanes that save a record.
        """

    def add(self, *values: int) -> None:
        """Add a value to each field of the one record of this thread, warp or site. Every active lane adds its values.

        Fields begin with 0; sums are modulo 2**64 or 2**32. With ``level="warp"``, a value must be below 2**59, so that
        the sum over the lanes is correct. The cheapest way is to count in a register, and to add this register at the
        exits. With ``level="site"``, all warps add to the record of the probed instruction, block or loop.
        """

    def locate(self) -> None:
        """Find the place of the record now, so that this time is not between a clock read and the next ``save``.

        Between ``locate`` and ``save``, only local variables may be assigned; only lanes that save execute this code.
        """


def Map(  # noqa: N802 - the language's own word
    *,
    level: Literal["warp", "thread", "site"],
    type: Literal["array", "dynamic"] = "array",  # noqa: A002 - the language's own word
    size: int | None = None,
    cap: int = 1,
    reduce: Literal["warp", "block", "launch"] | None = None,
) -> Callable[[object], SavedMap]:
    """Declare a class of ``u64`` and ``u32`` fields as a map: ``cap`` records of ``size`` bytes per warp or thread.

    By default, ``size`` is the size of the fields. With ``cap=1``, a later record replaces an earlier one; otherwise
    the first ``cap`` records are kept, and all records are counted. A map with ``level="site"`` has one record per
    probed instruction, block or loop; all warps ``add`` to its fields, which are ``u64``. With ``reduce``, results keep
    sums per launch, block or warp, unless the run has ``--detail``.
    """
    _refuse(level, type, size, cap, reduce)


def probe(
    *, pos: str, level: Literal["warp", "thread", "site"] = "thread", before: bool = False
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Declare a function as a probe.

    ``pos`` is ``"kernel"`` (the entry with ``before=True``, or else every exit); opcodes joined by ``:``, such
    as ``"ld.global:st.global"``: instructions of that opcode that have all these modifiers, and with ``"ld.!param"``
    not that one; with a ``+`` behind, as in ``"mbarrier.try_wait+"``, a loop that only tries the instruction again
    is one; ``"block"``: the start of every basic block, of those only that hold loads with ``"block.load"`` (or
    another class of ``ptx.instruction_facts``); ``"loop"``: the first block of every loop. The last two need
    ``before=True``. ``level`` must be that of the maps that the function saves in.
    """
    _refuse(pos, level, before)


def clock() -> int:
    """Return the SM's clock, 64 bits, in cycles of that SM. Clocks of two SMs are not comparable."""
    _refuse()


def clock32() -> int:
    """Return the low 32 bits of the SM's clock, one register cheaper; differences are correct up to 2**32 cycles."""
    _refuse()


def time() -> int:
    """Return the GPU's global timer, in nanoseconds, 64 bits. Its step may be a microsecond."""
    _refuse()


def cuid() -> int:
    """Number of the SM (compute unit) that runs this warp."""
    _refuse()


def lane() -> int:
    """Number of this thread in its warp, 0 to 31."""
    _refuse()


def warp() -> int:
    """Number of the place that the warp takes on its SM (``%warpid``)."""
    _refuse()


def _refuse(*_: Any) -> NoReturn:
    raise ProbeFileError("a probe is compiled, not run; use it with 'tui-probe run -p FILE -- COMMAND'")
