"""Kernels that several probes are tested with."""

GENERIC = """
.shared .align 8 .b8 tile[256];
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
mov.u32 %r1, %tid.x;
ld.param.u64 %rd1, [out];
mul.wide.u32 %rd2, %r1, 8;
add.s64 %rd3, %rd1, %rd2;            // in global memory
mov.u64 %rd4, tile;
cvta.shared.u64 %rd5, %rd4;
and.b32 %r2, %r1, 31;
mul.wide.u32 %rd6, %r2, 8;
add.s64 %rd5, %rd5, %rd6;            // in shared memory
setp.lt.u32 %p1, %r1, 5;
selp.b64 %rd7, %rd3, %rd5, %p1;      // threads 0 to 4: global
setp.eq.u32 %p2, %r1, 2;
st.u64 [%rd7], %rd6;
@!%p2 ld.u32 %r3, [%rd7];
@%p2 st.u8 [%rd3+2], %r2;
@%p2 exit;
@%p1 ld.relaxed.gpu.u8 %r4, [%rd7+1];
st.shared.u32 [tile], %r1;
ret;
"""
