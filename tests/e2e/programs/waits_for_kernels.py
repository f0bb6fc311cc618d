"""Load a module of several kernels, wait until an engine has so many in its cache, and launch each once.

waits_for_kernels.py CACHE ENTRIES
"""

import ctypes
import sys
import time
from pathlib import Path

NAMES = ("first", "second", "third", "fourth")
KERNEL = """
.visible .entry NAME(.param .u64 p)
{
.reg .b64 %a;
.reg .b32 %v;
ld.param.u64 %a, [p];
ld.global.u32 %v, [%a];
add.u32 %v, %v, 1;
st.global.u32 [%a], %v;
ret;
}
"""
PTX = ".version 8.0\n.target sm_80\n.address_size 64\n" + "".join(KERNEL.replace("NAME", name) for name in NAMES)
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    if code := getattr(cuda, name)(*arguments):
        raise SystemExit(f"{name}: {code}")


context, module, word = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
call("cuMemAlloc_v2", ctypes.byref(word), ctypes.c_size_t(4))
call("cuMemsetD32_v2", word, 1, ctypes.c_size_t(1))
call("cuModuleLoadData", ctypes.byref(module), PTX.encode())
deadline = time.monotonic() + 60
while len(list(Path(sys.argv[1]).glob("*.entry"))) < int(sys.argv[2]):
    if time.monotonic() > deadline:
        raise SystemExit("the kernels are not prepared")
    time.sleep(0.01)
for kernel in NAMES:
    function = ctypes.c_void_p()
    call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(word))
    call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
total = ctypes.c_uint32()
call("cuMemcpyDtoH_v2", ctypes.byref(total), word, ctypes.c_size_t(4))
sys.stdout.write(f"{total.value}\n")
