"""Block lifetime in Python."""

from tui_probe.dsl import Map, clock, cuid, probe, u32, u64

CALLBACK = "block_sched"
start: u64 = 0


@Map(level="warp", type="array", size=16, cap=1)
class block_sched:
    start: u64
    elapsed: u32
    smid: u32


@probe(pos="kernel", level="warp", before=True)
def begin():
    start = clock()


@probe(pos="kernel", level="warp")
def finish():
    end = clock()
    block_sched.save(start, end - start, cuid())
