// Inline assembly: scopes, registers without a percent sign, guards, named labels, wide vectors.
extern "C" __global__ void scoped(int *out, int n) {
    int r;
    asm volatile("{\n\t.reg .pred p, q;\n\t.reg .b32 t<3>;\n\t"
                 "setp.ne.s32 p|q, %1, 0;\n\t@p add.s32 t0, %1, 1;\n\t@!p mov.b32 t0, 7;\n\t"
                 "{ .reg .b32 t1; shl.b32 t1, t0, 2; xor.b32 t2, t1, 0x0F; }\n\tselp.b32 %0, t0, t2, p;\n\t}"
                 : "=r"(r) : "r"(n));
    out[threadIdx.x] = r;
}

extern "C" __global__ void waits(int *flag) {
    asm volatile("{ .reg .pred done; .reg .b32 seen;\n"
                 "again: /* until the flag is up */ ld.acquire.gpu.global.b32 seen, [%0 + 4]; // spin\n"
                 "setp.eq.u32 done, seen, 1;\n@!done bra again; }" :: "l"(flag) : "memory");
    flag[0] = 2;
}

extern "C" __global__ void wide(unsigned long long *p, float *f) {
    asm volatile("{ .reg .b64 a, b; ld.global.v2.b64 {a, b}, [%0]; st.global.v2.b64 [%0+16], {b, a}; }" :: "l"(p));
    asm volatile("{ .reg .f32 a, b, c, d; ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {a, b, c, _}, [%0];"
                 " fma.rn.f32 d, a, b, 0f3F800000; st.global.cs.v4.f32 [%0+-16], {d, c, b, a}; }" :: "l"(f));
    asm volatile("prefetch.global.L2::evict_last [%0]; discard.global.L2 [%0], 128;" :: "l"(p));
    asm volatile("{ .reg .u32 x; mov.u32 x, WARP_SZ; vadd.u32.u32.u32 x, x.b0, x.h1; mov.b32 x, {%0, %1}; }"
                 :: "h"((short)1), "h"((short)2));
}

extern "C" __global__ void stops(int *out) {
    if (out[0]) asm volatile("brkpt;");
    if (out[1]) asm volatile("exit;");
    asm volatile("pmevent 3;");
    asm volatile("bar.warp.sync 0xffffffff; barrier.sync.aligned 1, 64; bar.arrive 2, 96;");
    asm volatile("nanosleep.u32 20;");
}
