"""Small kernels in PTX for tests of the driver."""

from __future__ import annotations

HEAD = ".version 7.2\n.target sm_80\n.address_size 64\n"


def kernel(name: str, body: str, parameters: str = "") -> str:
    """A kernel of a few registers."""
    registers = ".reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"
    return f".visible .entry {name}({parameters})\n{{\n{registers}{body}\nret;\n}}\n"


STORE_TO = kernel(
    "store_to", "ld.param.u64 %rd1, [address];\nmov.u32 %r1, 7;\nst.global.u32 [%rd1], %r1;", ".param .u64 address"
)
FOREVER = kernel("forever", "again: bra again;")
TRAP = kernel("trap", "trap;")
UNSUPPORTED = kernel("unsupported", "tex.1d.v4.s32.s32 {%r1,%r2,%r3,%r4}, [%rd1, {%r5}];")
NOTHING = kernel("nothing", "")
SHAPED = kernel(
    "shaped",
    "",
    ".param .u8 byte, .param .u64 address, .param .align 4 .b8 record[12], .param .u16 half",
)
COUNTER = (
    ".visible .global .align 4 .u32 counter = 5;\n.visible .const .align 8 .b8 table[16] = {1, 2, 3};\n"
    ".global .align 16 .b8 scratch[32];\n"
    + kernel(
        "count",
        "mov.u64 %rd1, counter;\ncvta.global.u64 %rd2, %rd1;\nld.u32 %r1, [%rd2];\nadd.u32 %r1, %r1, 1;\n"
        "st.u32 [%rd2], %r1;",
    )
)
SHARED = (
    ".extern .shared .align 4 .b8 dynamic[];\n"
    ".visible .entry shared()\n.reqntid 64\n{\n.shared .align 4 .b8 tile[1000];\nret;\n}\n"
)
LIMITED = ".visible .entry limited()\n.maxntid 128, 1, 1\n{\nret;\n}\n"
CLOCKS = kernel(
    "clocks",
    "ld.param.u64 %rd1, [address];\nmov.u64 %rd2, %clock64;\nst.global.u64 [%rd1], %rd2;\nmov.u32 %r1, %nsmid;\n"
    "st.global.u32 [%rd1+8], %r1;",
    ".param .u64 address",
)
POINTERS = (
    ".visible .global .align 4 .b8 pair[8] = {1, 0, 0, 0, 2, 0, 0, 0};\n"
    ".visible .global .align 8 .u64 second = pair+4;\n" + NOTHING
)
