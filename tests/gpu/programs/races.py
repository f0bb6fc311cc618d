"""Kernels with a race, or without: ``races.py racy|right NAME...`` launches each and prints a sum of what it leaves.

The racy form of a kernel waits by arithmetic where the right one synchronizes: without delays it leaves the same.
"""

import ctypes
import sys

THREADS = 256
HEAD = """.version 7.0
.target sm_80
.address_size 64
.visible .entry {name}(.param .u64 out, .param .u64 scratch)
{{
.reg .b32 %a, %b, %c, %thread, %block, %warp, %lane, %sum, %step, %other, %here, %work;
.reg .b64 %out, %own, %wide, %scratch;
.reg .pred %p, %q;
.shared .align 4 .b32 tile[256];
ld.param.u64 %out, [out];
ld.param.u64 %scratch, [scratch];
mov.u32 %thread, %tid.x;
mov.u32 %block, %ctaid.x;
shr.u32 %warp, %thread, 5;
and.b32 %lane, %thread, 31;
mad.lo.u32 %a, %block, 256, %thread;
mad.wide.u32 %own, %a, 4, %out;
shl.b32 %here, %thread, 2;
mov.u32 %a, tile;
add.u32 %here, %here, %a;
st.shared.u32 [%here], 0;
mov.u32 %sum, 0;
mov.u32 %work, 1;
bar.sync 0;
"""
TAIL = "\nst.global.u32 [%own], %sum;\nret;\n}\n"
SYNC = "bar.sync 0;"
labels = iter(range(1000))


def work(times: str = "150") -> str:
    """Arithmetic that takes some microseconds."""
    label = f"$W{next(labels)}"
    return f"""
mov.u32 %step, {times};
{label}:
mad.lo.u32 %work, %work, %work, %step;
sub.u32 %step, %step, 1;
setp.gt.s32 %p, %step, 0;
@%p bra {label};
setp.eq.u32 %p, %work, 77;
@%p add.u32 %sum, %sum, 1;
"""


def staggered() -> str:
    """Work that takes each warp and block longer than the one before."""
    return "\nadd.u32 %c, %warp, %block;\nmad.lo.u32 %c, %c, 200, 1;\n" + work("%c")


def place(expression: str) -> str:
    """The address of ``tile[%other]`` in %other."""
    return f"{expression}\nshl.b32 %other, %other, 2;\nmov.u32 %a, tile;\nadd.u32 %other, %other, %a;\n"


def lower_warp(*, right: bool) -> str:
    wait = SYNC if right else work()
    return f"""mad.lo.u32 %b, %thread, 3, 1;
st.shared.u32 [%here], %b;
{wait}
{place("max.u32 %other, %thread, 32; sub.u32 %other, %other, 32;")}
ld.shared.u32 %sum, [%other];"""


def tree(*, right: bool) -> str:
    steps = "".join(
        f"""setp.lt.u32 %q, %thread, {half};
{place(f"add.u32 %other, %thread, {half}; and.b32 %other, %other, 255;")}
ld.shared.u32 %b, [%other];
ld.shared.u32 %c, [%here];
add.u32 %c, %b, %c;
@%q st.shared.u32 [%here], %c;
{SYNC if right else work()}
"""
        for half in (128, 64, 32)
    )
    return f"st.shared.u32 [%here], %thread;\nbar.sync 0;\n{steps}ld.shared.u32 %sum, [%here];"


def neighbours(*, right: bool) -> str:
    return f"""st.shared.u32 [%here], %thread;
bar.sync 0;
{place("add.u32 %other, %thread, 32; and.b32 %other, %other, 255;")}
ld.shared.u32 %b, [%other];
{SYNC if right else work()}
st.shared.u32 [%here], %b;
bar.sync 0;
ld.shared.u32 %sum, [%here];"""


def counter(*, right: bool) -> str:
    add = "atom.shared.add.u32 %b, [tile], 1;"
    if not right:
        add = "ld.shared.u32 %b, [tile];\nadd.u32 %b, %b, 1;\nst.shared.u32 [tile], %b;"
    label = f"$C{next(labels)}"
    return f"""{staggered()}
setp.ne.u32 %q, %lane, 0;
@%q bra {label};
{add}
{label}:
bar.sync 0;
ld.shared.u32 %sum, [tile];"""


def tiles(*, right: bool) -> str:
    return "".join(
        f"""mad.lo.u32 %b, %thread, {turn}, {turn};
st.shared.u32 [%here], %b;
bar.sync 0;
{place(f"mad.lo.u32 %other, %thread, 7, {turn * 32}; and.b32 %other, %other, 255;")}
ld.shared.u32 %b, [%other];
mad.lo.u32 %sum, %sum, 3, %b;
{SYNC if right else work()}
"""
        for turn in range(1, 4)
    )


def warp_sums(*, right: bool) -> str:
    sums = "".join(f"ld.shared.u32 %b, [tile+{4 * warp}];\nadd.u32 %sum, %sum, %b;\n" for warp in range(8))
    label = f"$S{next(labels)}"
    return f"""{place("mov.u32 %other, %warp;")}
setp.eq.u32 %q, %lane, 0;
add.u32 %b, %warp, 5;
@%q st.shared.u32 [%other], %b;
{SYNC if right else work()}
setp.ne.u32 %q, %thread, 0;
@%q bra {label};
{sums}{label}:"""


def message(*, right: bool) -> str:
    """Block 0 writes a number that block 1 reads."""
    spin, done = f"$M{next(labels)}", f"$M{next(labels)}"
    wait = f"{spin}:\nld.acquire.gpu.global.u32 %b, [%scratch+4];\nsetp.eq.u32 %p, %b, 0;\n@%p bra {spin};"
    return f"""setp.ne.u32 %q, %thread, 0;
@%q bra {done};
setp.eq.u32 %q, %block, 0;
@%q st.global.u32 [%scratch], 41;
@%q membar.gl;
@%q st.release.gpu.global.u32 [%scratch+4], 1;
@%q bra {done};
{wait if right else work("2000")}
ld.volatile.global.u32 %sum, [%scratch];
{done}:"""


def last_writer(*, right: bool) -> str:
    store = "red.global.max.u32 [%scratch], %b;" if right else "st.global.u32 [%scratch], %b;"
    skip = f"$L{next(labels)}"
    return f"""{staggered()}
setp.ne.u32 %q, %thread, 0;
@%q bra {skip};
add.u32 %b, %block, 1;
{store}
{skip}:"""


def histogram(*, right: bool) -> str:
    add = "atom.shared.add.u32 %b, [%other], 1;"
    if not right:
        add = "ld.shared.u32 %b, [%other];\nadd.u32 %b, %b, 1;\nst.shared.u32 [%other], %b;"
    return f"""{staggered()}
{place("mov.u32 %other, %lane;")}
{add}
bar.sync 0;
ld.shared.u32 %sum, [%other];"""


def flag(*, right: bool) -> str:
    """Warp 0 writes data and a flag; warp 1 waits for the flag and reads the data."""
    stores = ["st.volatile.shared.u32 [tile+64], 9;", "st.volatile.shared.u32 [tile+128], 1;"]
    first, second = stores if right else reversed(stores)
    spin, reader, done = (f"$F{next(labels)}" for _ in range(3))
    return f"""setp.eq.u32 %q, %thread, 32;
@%q bra {spin};
setp.ne.u32 %q, %thread, 0;
@%q bra {done};
{first}
membar.cta;
{second}
bra {done};
{spin}:
ld.volatile.shared.u32 %b, [tile+128];
setp.eq.u32 %p, %b, 0;
@%p bra {spin};
{reader}:
{work()}
ld.volatile.shared.u32 %sum, [tile+64];
{done}:"""


KERNELS = {
    "lower_warp": lower_warp, "tree": tree, "neighbours": neighbours, "counter": counter, "tiles": tiles,
    "warp_sums": warp_sums, "message": message, "last_writer": last_writer, "histogram": histogram, "flag": flag,
}  # fmt: skip


def main() -> None:
    form, names = sys.argv[1], sys.argv[2:] or list(KERNELS)
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        status = getattr(cuda, name)(*arguments)
        assert status == 0, (name, status)

    context, device, memory = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    size = 2 * THREADS * 4 + 8
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
    for name in names:
        text = HEAD.format(name=name) + KERNELS[name](right=form == "right") + TAIL
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
        call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        call("cuMemsetD8_v2", memory, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        arguments = [ctypes.c_uint64(memory.value), ctypes.c_uint64(memory.value + size - 8)]
        pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, arguments))
        call("cuLaunchKernel", function, 2, 1, 1, THREADS, 1, 1, 0, None, pointers, None)
        call("cuCtxSynchronize")
        numbers = (ctypes.c_uint32 * (size // 4))()
        call("cuMemcpyDtoH_v2", numbers, memory, ctypes.c_size_t(size))
        print(name, sum(word * (3 * place + 1) for place, word in enumerate(numbers)) % 1000003, flush=True)


main()
