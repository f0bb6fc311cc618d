"""Launches of kernels in which one thread accesses memory outside of an allocation; prints what each does.

``outside.py [KIND...]``: KIND is a key of ``ACCESSES``. Each kind has three launches: two past the end of an array, of
which the second ends at a multiple of 512 bytes, and one to an array that was freed. Arrays are small, so that the
memory behind them is mapped. All loaded values are used: ptxas narrows a vector load of which one element is used.
After ``fatal``, the last launch accesses memory that is not mapped: the driver ends the kernel, and the context is of
no use any more.
"""

import ctypes
import sys

ACCESSES = {
    "ld.global.u8": "ld.global.u8 %r, [%a];",
    "ld.global.u32": "ld.global.u32 %r, [%a];",
    "ld.global.u64": "ld.global.u64 %w, [%a];",
    "ld.global.v4.u32": "ld.global.v4.u32 {%r, %s, %t, %u}, [%a];",
    "ld.u32": "ld.u32 %r, [%a];",
    "st.global.u8": "st.global.u8 [%a], %r;",
    "st.global.u32": "st.global.u32 [%a], %r;",
    "st.global.v2.u64": "st.global.v2.u64 [%a], {%w, %w};",
    "atom.global.add.u32": "atom.global.add.u32 %r, [%a], 1;",
    "red.global.add.u32": "red.global.add.u32 [%a], 1;",
}
SIZES = {"v4": 16, "v2": 16, "u8": 1, "u32": 4, "u64": 8}
TEXT = """.version 7.0
.target sm_80
.address_size 64
.visible .entry {name}(.param .u64 array, .param .u32 guilty, .param .u64 there, .param .u64 spare)
{{
.reg .b32 %r, %s, %t, %u, %n;
.reg .b64 %w, %a, %b;
.reg .pred %p;
ld.param.u64 %a, [array];
ld.param.u64 %b, [there];
ld.param.u32 %n, [guilty];
mov.u32 %r, %ctaid.x;
mov.u32 %s, %tid.x;
mad.lo.u32 %r, %r, 64, %s;
setp.eq.u32 %p, %r, %n;
mov.u64 %w, 0;
selp.b64 %a, %b, %a, %p;
mov.u32 %r, 0;
mov.u32 %t, 0;
mov.u32 %u, 0;
{access}
add.u32 %r, %r, %s;
add.u32 %t, %t, %u;
add.u32 %r, %r, %t;
cvt.u64.u32 %b, %r;
xor.b64 %w, %w, %b;
setp.eq.u64 %p, %w, 0xfedcba98;
ld.param.u64 %b, [spare];
@%p st.global.u64 [%b], %w;
ret;
}}
"""
FAR = 1 << 40
"""Bytes from an array to memory that nothing maps."""
BYTES = 1000  # not a multiple of 512: the driver leaves the rest unused
WHOLE = 1024
NEAR = 512
cuda = ctypes.CDLL("libcuda.so.1")


def call(name: str, *arguments: object) -> None:
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)


def allocate(size: int) -> int:
    memory = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
    call("cuMemsetD8_v2", memory, ctypes.c_ubyte(0), ctypes.c_size_t(size))
    return memory.value


def launch(function: ctypes.c_void_p, array: int, guilty: int, there: int, spare: int) -> None:
    values = [ctypes.c_uint64(array), ctypes.c_uint32(guilty), ctypes.c_uint64(there), ctypes.c_uint64(spare)]
    pointers = (ctypes.c_void_p * 4)(*map(ctypes.addressof, values))
    call("cuLaunchKernel", function, 2, 1, 1, 64, 1, 1, 0, None, pointers, None)


def main() -> None:
    context, device = ctypes.c_void_p(), ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    arrays = [allocate(BYTES) for _ in range(4)]
    array, freed, spare = arrays[0], arrays[1], arrays[3]
    wholes = [allocate(WHOLE) for _ in range(4)]
    whole_end = max(wholes) + WHOLE
    assert not any(whole_end <= other < whole_end + NEAR for other in arrays), "an array is behind the last one"
    call("cuMemFree_v2", ctypes.c_uint64(freed))
    is_fatal = "fatal" in sys.argv
    accesses = [access for access in sys.argv[1:] if access != "fatal"] or list(ACCESSES)
    for number, access in enumerate(accesses):
        name = access.replace(".", "_")
        text = TEXT.format(name=name, access=ACCESSES[access])
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
        call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        size = next(size for part, size in SIZES.items() if part in access.split("."))
        for kind, guilty, there in (
            ("out of bounds", 5 + 7 * number, array + BYTES + 8 - size % 16),
            ("out of bounds", 60 + number, whole_end),
            ("use after free", 100 - number, freed + 16),
        ):
            launch(function, array, guilty, there, spare)
            cuda.cuCtxSynchronize()
            print(f"{name}\t{kind}\t{guilty // 64}\t{guilty % 64}\t{size}\t{there:#x}", flush=True)
    if is_fatal:
        launch(function, array, 77, array + FAR, spare)
        status = cuda.cuCtxSynchronize()
        print(f"{name}\tillegal address\t1\t13\t{size}\t{array + FAR:#x}\t{status}", flush=True)


main()
