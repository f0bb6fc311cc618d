"""The kinds of lines in ``event.log``, as immutable records.

Integers that a line may leave out (or write as ``-``) are ``None``. Addresses and handles are integers. Texts are
decoded as UTF-8 with other bytes written as ``\\xNN``, so that any log can be shown. The grammar of each line is in
``tui_probe.trace.event_readers``.
"""

from __future__ import annotations

from typing import TypeAlias

from tui_probe.trace.graph_events import GraphEvent
from tui_probe.trace.kernel_events import (
    Alternating,
    EngineAnswer,
    EngineStarted,
    FileStep,
    FunctionFound,
    FunctionMissing,
    Image,
    ImageFound,
    InfoRead,
    KernelFate,
    KernelFolder,
    KernelReady,
    ModuleCall,
    ProbedFunction,
    ProbingFate,
)
from tui_probe.trace.launch_events import (
    Benchmark,
    Counted,
    EmptyPair,
    GpuTimed,
    KeyNamed,
    LaunchEnded,
    LaunchStarted,
    LaunchTimes,
    MapSize,
    Packed,
    Parameters,
    PassedLost,
    PassedThrough,
    ProbeMemory,
    Saved,
    Unlisted,
)
from tui_probe.trace.process_events import (
    BenchmarkEnabled,
    BudgetTold,
    Callback,
    Command,
    ContextFailed,
    Device,
    DriverOpened,
    Ending,
    Epoch,
    Exited,
    Initialised,
    MemoryCall,
    NvtxRange,
    ProcessStarted,
    ReasonNamed,
    Trouble,
    Unknown,
)

Event: TypeAlias = (
    Unknown
    | ProcessStarted
    | Command
    | DriverOpened
    | Epoch
    | Device
    | Initialised
    | BenchmarkEnabled
    | MemoryCall
    | ModuleCall
    | Image
    | FunctionMissing
    | FunctionFound
    | ImageFound
    | KernelFolder
    | FileStep
    | EngineStarted
    | EngineAnswer
    | InfoRead
    | KernelReady
    | KernelFate
    | ProbedFunction
    | ProbingFate
    | Parameters
    | LaunchStarted
    | MapSize
    | ProbeMemory
    | LaunchEnded
    | Saved
    | PassedThrough
    | KeyNamed
    | ReasonNamed
    | Packed
    | PassedLost
    | LaunchTimes
    | Benchmark
    | GpuTimed
    | EmptyPair
    | Counted
    | Callback
    | Alternating
    | NvtxRange
    | BudgetTold
    | Unlisted
    | ContextFailed
    | Trouble
    | Ending
    | Exited
    | GraphEvent
)
