"""Memory that a launch could reach, and the tensors in it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.trace.make import TraceWriter
from tui_probe.trace.device_memory import Allocation, LaunchMemory, read_launch_memory
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace
from tui_probe.trace.tensors import read_tensors


def trace_of(directory: Path) -> tuple[Trace, list[int]]:
    """Two launches; an allocation goes and another comes between them."""
    writer = TraceWriter(directory)
    writer.start()
    writer.kernel(0, "_Z4fillPf")
    writer.lines(
        "[mem] cuMemAlloc_v2 0 dptr 7f0000000000 bytesize 4096",
        "[mem] cuMemAllocAsync 0 dptr 7f0000100000 bytesize 512",
        "[mem] cuMemAlloc_v2 2 dptr 7f0000300000 bytesize 999",
    )
    first = writer.launch(0)
    writer.lines(
        "[mem] cuMemFree_v2 0 dptr 7f0000000000",
        "[mem] cuMemFreeAsync 1 dptr 7f0000100000",
        "[mem] cuMemAllocPitch_v2 0 dptr 7f0000200000 bytesize 64",
    )
    return open_trace(directory), [first, writer.launch(0)]


def test_memory_at_a_launch(tmp_path: Path) -> None:
    trace, launches = trace_of(tmp_path / "trace")
    trace = open_trace(tmp_path / "trace")
    before, after = (read_launch_memory(trace, trace.launches[trace.launches.row_of(launch)]) for launch in launches)
    assert before.allocations == (Allocation(0x7F0000000000, 4096), Allocation(0x7F0000100000, 512))
    assert before.parameters == (0x7F0000000000, 0x10)
    assert after.allocations == (Allocation(0x7F0000100000, 512), Allocation(0x7F0000200000, 64))
    assert read_launch_memory(trace, None) == LaunchMemory(after.allocations)


def test_a_parameter_longer_than_a_pointer(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    writer.kernel(0, "k")
    writer.lines(
        f"[exec] 77 param ff {'00' * 8}3412007f00000000 1",
        "[exec] grid 1 1 1 block 32 1 1 shared 0 kernel 0 launch 0 stream 0x0",
    )
    trace = open_trace(tmp_path / "trace")
    assert read_launch_memory(trace, trace.launches[0]).parameters == (
        255, (0x7F00_1234 << 64).to_bytes(16, "little"), 1
    )  # fmt: skip
    pointers = list(read_launch_memory(trace, trace.launches[0]).pointers())
    assert pointers == [("0", 255), ("1[0]", 0), ("1[8]", 0x7F00_1234), ("2", 1)]


def test_the_allocation_of_an_address() -> None:
    memory = LaunchMemory((Allocation(100, 10), Allocation(200, 5)))
    by_address = {address: memory.allocation_at(address) for address in (99, 100, 109, 110, 204, 205)}
    assert [address for address, each in by_address.items() if each is not None] == [100, 109, 204]


@given(st.binary(max_size=400))
def test_any_log_can_be_read(tmp_path_factory: object, text: bytes) -> None:
    directory = tmp_path_factory.mktemp("trace")  # type: ignore[attr-defined]
    (directory / "event.log").write_bytes(b"[mem] cuMemAlloc_v2 0 dptr 10 bytesize 4\n" + text)
    (directory / "tensor.trace").write_bytes(text)
    trace = Trace(directory)
    assert read_launch_memory(trace, None).allocations[:1] == (Allocation(0x10, 4),) or b"[mem]" in text
    assert isinstance(read_tensors(trace), list)


def test_tensors(tmp_path: Path) -> None:
    (tmp_path / "tensor.trace").write_text(
        "[call]  torch.float16  torch.Size([4, 32, 8])  2048  139637976727552  aten::normal_\n"
        "[ret]  torch.float16  torch.Size([7])  10  64  odd\n"
        "[ret]  torch.float32  torch.Size([2, 2])  16  64  later\n"
        "not a tensor\n[call]  cut\n"
    )
    first, second = read_tensors(Trace(tmp_path))
    assert (first.name, first.start, first.size, first.shape) == ("later", 64, 16, (2, 2))
    assert (second.name, second.shape, second.element) == ("aten::normal_", (4, 32, 8), 2)
    assert second.index(0) == (0, 0, 0)
    assert second.index(2 * (3 * 256 + 31 * 8 + 7)) == (3, 31, 7)
    assert second.index(2048) is None
    assert read_tensors(Trace(tmp_path / "nowhere")) == []


def test_tensors_of_a_launch(tmp_path: Path) -> None:
    """Addresses are used again: what counts is what was named last before the launch, else first after it."""
    (tmp_path / "tensor.trace").write_text(
        "[call]  100  torch.Size([4])  16  64  x  f  a.py:1\n"
        "[call]  200  torch.Size([2])  8  72  y  f  a.py:2\n"
        "[call]  300  torch.Size([8])  32  64  z  f  a.py:3\n"
        "[call]  300  torch.Size([8])  32  200  late  f  a  b.py:3\n"
        "[call]  400  torch.Size([8])  32  200  later  f  a.py:4\n"
    )
    trace = Trace(tmp_path)
    for time_ns, names in ((150, ["x", "late"]), (250, ["y", "late"]), (350, ["z", "late"]), (None, ["z", "later"])):
        assert [tensor.name for tensor in read_tensors(trace, time_ns)] == names
    assert (read_tensors(trace, 350)[0].function, read_tensors(trace, 350)[0].place) == ("f", "a.py:3")


def test_a_view_of_more_memory_than_its_own(tmp_path: Path) -> None:
    (tmp_path / "tensor.trace").write_text(
        "[call]  1  torch.Size([4, 2])  64  64  old  f  a.py:1\n"
        "[call]  1  torch.Size([3, 2])  1024  512  part  f  a.py:1  torch.float16  2  (8, 2)  500\n"
        "[call]  1  torch.Size([3])  40  4096  odd  f  a.py:1\n"
    )
    old, part, odd = read_tensors(Trace(tmp_path))
    assert old.index(8) == (0, 1)
    assert part.size == 2 * (2 * 8 + 2 + 1)
    assert (part.index(2 * 8), part.index(2 * 10), part.index(2 * 9), part.index(2 * 12)) == (
        (1, 0),
        (1, 1),
        None,
        None,
    )
    assert (odd.element, odd.index(0)) == (None, None)
