"""CUDA graphs by the driver's own interface, for programs and tests on a real GPU and on the simulated one.

Words of memory are changed by two kernels that do not commute, so that a graph whose nodes ran in another order, twice
or not at all leaves other words.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

KERNELS = b"""
.version 7.0
.target sm_80
.address_size 64

.visible .entry scale(.param .u64 words, .param .u32 factor, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [words];
    ld.param.u32 %r1, [factor];
    ld.param.u32 %r2, [count];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r5, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r5, %r2;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r6, [%rd4];
    mad.lo.s32 %r7, %r6, %r1, %r5;
    st.global.u32 [%rd4], %r7;
DONE:
    ret;
}

.visible .entry shift(.param .u64 words, .param .u32 amount, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [words];
    ld.param.u32 %r1, [amount];
    ld.param.u32 %r2, [count];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r5, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r5, %r2;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r6, [%rd4];
    add.s32 %r7, %r6, %r1;
    st.global.u32 [%rd4], %r7;
DONE:
    ret;
}
"""
THREADS = 64
COUNT = 1 << 32


class CudaError(Exception):
    """A call did not succeed; ``code`` is the CUresult."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name} returned {code}")
        self.code = code


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [
        ("function", c_void_p), ("grid", c_uint * 3), ("block", c_uint * 3), ("shared", c_uint),
        ("parameters", c_void_p), ("extra", c_void_p), ("kernel", c_void_p), ("context", c_void_p),
    ]  # fmt: skip


class FillNode(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [
        ("address", c_uint64), ("pitch", c_size_t), ("value", c_uint), ("bytes", c_uint), ("width", c_size_t),
        ("height", c_size_t),
    ]  # fmt: skip


class _Side(ctypes.Structure):
    _fields_ = [
        ("x", c_size_t), ("y", c_size_t), ("z", c_size_t), ("level", c_size_t), ("type", c_uint), ("host", c_void_p),
        ("device", c_uint64), ("array", c_void_p), ("reserved", c_void_p), ("pitch", c_size_t), ("height", c_size_t),
    ]  # fmt: skip


class CopyNode(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = [
        ("source", _Side), ("target", _Side), ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t),
    ]  # fmt: skip


HOST_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p)


class HostNode(ctypes.Structure):
    """CUDA_HOST_NODE_PARAMS."""

    _fields_ = [("function", HOST_FUNCTION), ("data", c_void_p)]


class UpdateResult(ctypes.Structure):
    """CUgraphExecUpdateResultInfo."""

    _fields_ = [("result", c_int), ("node", c_void_p), ("from_node", c_void_p)]


class Instantiation(ctypes.Structure):
    """CUDA_GRAPH_INSTANTIATE_PARAMS."""

    _fields_ = [("flags", c_uint64), ("upload", c_void_p), ("node", c_void_p), ("result", c_int)]


class MemoryNode(ctypes.Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS."""

    _fields_ = [
        ("allocation", c_int), ("handles", c_int), ("location", c_int), ("device", c_int), ("rest", ctypes.c_char * 72),
        ("accesses", c_void_p), ("count", c_size_t), ("bytes", c_size_t), ("address", c_uint64),
    ]  # fmt: skip


def copy_of(target: int, source: int, size: int) -> CopyNode:
    """A linear copy of that many bytes on the device."""
    node = CopyNode(width=size, height=1, depth=1)
    node.source.type = node.target.type = 2
    node.source.device, node.target.device = source, target
    return node


class Gpu:
    """A context on device 0 with the two kernels; calls of the driver raise CudaError unless they succeed."""

    def __init__(self, library: ctypes.CDLL | None = None, *, context: bool = True) -> None:
        self.library = library or ctypes.CDLL("libcuda.so.1")
        self.parameters: list[Any] = []
        if context:
            self("cuInit", 0)
            self("cuDevicePrimaryCtxRetain", byref(made := c_void_p()), 0)
            self("cuCtxSetCurrent", made)
        self("cuModuleLoadData", byref(module := c_void_p()), KERNELS)
        self.module = module
        self.kernels = {name: self.function(name) for name in ("scale", "shift")}

    def __call__(self, name: str, *arguments: object) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            raise CudaError(name, code)

    def function(self, name: str) -> c_void_p:
        self("cuModuleGetFunction", byref(found := c_void_p()), self.module, name.encode())
        return found

    def words(self, count: int) -> int:
        """The address of that many words of device memory, all 0."""
        self("cuMemAlloc_v2", byref(address := c_uint64()), c_size_t(4 * count))
        self("cuMemsetD8_v2", address, 0, c_size_t(4 * count))
        self("cuCtxSynchronize")  # streams that do not wait for the default one must find it done
        return address.value

    def read(self, address: int, count: int) -> list[int]:
        self("cuCtxSynchronize")
        values = (c_uint * count)()
        self("cuMemcpyDtoH_v2", values, c_uint64(address), c_size_t(4 * count))
        return list(values)

    def stream(self) -> c_void_p:
        self("cuStreamCreate", byref(stream := c_void_p()), 1)
        return stream

    def event(self) -> c_void_p:
        self("cuEventCreate", byref(event := c_void_p()), 2)
        return event

    def order(self, before: c_void_p, after: c_void_p) -> None:
        """Make what comes next on stream ``after`` wait for what is on stream ``before``."""
        event = self.event()
        self("cuEventRecord", event, before)
        self("cuStreamWaitEvent", after, event, 0)
        self("cuEventDestroy_v2", event)

    def arguments(self, address: int, value: int, count: int) -> ctypes.Array[c_void_p]:
        values = (c_uint64(address), c_uint(value), c_uint(count))
        pointers = (c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        self.parameters = [*self.parameters[-64:], values, pointers]
        return pointers

    def launch(self, kernel: str, address: int, value: int, count: int, stream: c_void_p | None = None) -> None:
        blocks = -(-count // THREADS)
        arguments = self.arguments(address, value, count)
        self("cuLaunchKernel", self.kernels[kernel], blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, None)

    def kernel_node(self, kernel: str, address: int, value: int, count: int) -> KernelNode:
        arguments = ctypes.addressof(self.arguments(address, value, count))
        blocks = -(-count // THREADS)
        return KernelNode(
            self.kernels[kernel], (c_uint * 3)(blocks, 1, 1), (c_uint * 3)(THREADS, 1, 1), 0, c_void_p(arguments)
        )

    def graph(self) -> c_void_p:
        self("cuGraphCreate", byref(graph := c_void_p()), 0)
        return graph

    def add(self, what: str, graph: c_void_p, before: Sequence[c_void_p], *arguments: object) -> c_void_p:
        """``cuGraphAdd…`` with the nodes that come before."""
        nodes = (c_void_p * max(1, len(before)))(*(node.value for node in before))
        self(f"cuGraphAdd{what}", byref(node := c_void_p()), graph, nodes, c_size_t(len(before)), *arguments)
        return node

    def add_kernel(self, graph: c_void_p, before: Sequence[c_void_p], node: KernelNode) -> c_void_p:
        return self.add("KernelNode_v2", graph, before, byref(node))

    def instantiate(self, graph: c_void_p, flags: int = 0) -> c_void_p:
        self("cuGraphInstantiateWithFlags", byref(executable := c_void_p()), graph, c_ulonglong(flags))
        return executable

    def begin_capture(self, stream: c_void_p, mode: int = 0) -> None:
        self("cuStreamBeginCapture_v2", stream, mode)

    def end_capture(self, stream: c_void_p) -> c_void_p:
        self("cuStreamEndCapture", stream, byref(graph := c_void_p()))
        return graph

    def nodes(self, graph: c_void_p) -> list[c_void_p]:
        self("cuGraphGetNodes", graph, None, byref(count := c_size_t()))
        nodes = (c_void_p * max(1, count.value))()
        self("cuGraphGetNodes", graph, nodes, byref(count))
        return [c_void_p(node) for node in nodes[: count.value]]

    def node_type(self, node: c_void_p) -> int:
        self("cuGraphNodeGetType", node, byref(kind := c_int()))
        return kind.value


class Model:
    """Values that the words must have."""

    def __init__(self, count: int) -> None:
        self.values = [0] * count

    def apply(self, kernel: str, value: int) -> None:
        for i, word in enumerate(self.values):
            self.values[i] = (word * value + i if kernel == "scale" else word + value) % COUNT

    def fill(self, value: int) -> None:
        self.values = [value] * len(self.values)
