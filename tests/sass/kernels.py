"""Kernels in PTX whose machine code has what grafts must get right. They have no head; see ``assembled``."""

from __future__ import annotations

SAXPY = """
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
	.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<5>;
	ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a]; ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.s32 %p1, %r5, %r1;
	@%p1 exit;
	mul.wide.s32 %rd5, %r5, 4; add.s64 %rd6, %rd1, %rd5; add.s64 %rd7, %rd2, %rd5;
	ld.global.f32 %f2, [%rd6]; ld.global.f32 %f3, [%rd7]; fma.rn.f32 %f4, %f1, %f2, %f3;
	st.global.f32 [%rd7], %f4;
	ret;
}
"""
NO_PARAMETERS = """
.global .align 4 .u32 counter;
.visible .entry bare()
{
	.reg .b32 %r<3>;
	mov.u32 %r1, %tid.x; st.global.u32 [counter], %r1;
	ret;
}
"""
VARIABLES = """
.visible .global .align 4 .u32 seen = 7;
.visible .global .align 4 .b8 unused[16];
.global .align 4 .u32 counted;
.visible .global .attribute(.managed) .align 4 .u32 managed;
.global .align 1 .b8 $str[4] = {65, 66, 67, 0};
.visible .const .align 4 .u32 factors[4] = {1, 2, 3, 4};
.extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 values);
.visible .entry varied(.param .u64 y)
{
	.reg .b32 %r<12>; .reg .b64 %rd<8>;
	ld.param.u64 %rd1, [y];
	mov.u32 %r2, %tid.x; and.b32 %r9, %r2, 3; mul.wide.u32 %rd2, %r9, 4;
	mov.u64 %rd3, factors; add.s64 %rd4, %rd3, %rd2; ld.const.u32 %r4, [%rd4];
	ld.global.u32 %r5, [seen]; add.u32 %r4, %r4, %r5;
	ld.global.u32 %r6, [managed]; add.u32 %r4, %r4, %r6;
	atom.global.add.u32 %r3, [counted], %r4;
	mov.u64 %rd6, $str; cvta.global.u64 %rd6, %rd6;
	{
	.param .b64 format; .param .b64 values; .param .b32 status;
	st.param.b64 [format], %rd6; st.param.b64 [values], %rd1;
	call.uni (status), vprintf, (format, values);
	ld.param.b32 %r7, [status];
	}
	st.global.u32 [%rd1], %r3;
	ret;
}
"""
TEXTURE = """
.global .texref image;
.visible .entry textured(.param .u64 y)
{
	.reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .f32 %f<5>;
	ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x;
	tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}];
	st.global.f32 [%rd1], %f1;
	ret;
}
"""
MANY_PARAMETERS = """
.visible .entry many(.param .align 8 .b8 big[4092])
{
	.reg .b32 %r<3>; .reg .b64 %rd<3>;
	ld.param.u64 %rd1, [big]; ld.param.u32 %r1, [big+4088];
	st.global.u32 [%rd1], %r1;
	ret;
}
"""
PASSES_REGISTERS_ON = """
.visible .entry specialised(.param .u64 y)
.reqntid 256
.maxnreg 168
{
	.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<3>;
	ld.param.u64 %rd1, [y]; mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 128;
	@%p1 bra $more;
	setmaxnreg.dec.sync.aligned.u32 40;
	st.global.u32 [%rd1], %r2;
	ret;
$more:
	setmaxnreg.inc.sync.aligned.u32 232;
	st.global.u32 [%rd1+4], %r2;
	ret;
}
"""
SEVERAL = (
    SAXPY
    + NO_PARAMETERS
    + VARIABLES
    + MANY_PARAMETERS
    + """
.visible .const .align 4 .u32 weights[2] = {5, 6};
.func (.param .b32 root) rooted(.param .b32 value)
{
	.reg .f32 %f<3>; .reg .b32 %r<2>;
	ld.param.f32 %f1, [value]; sqrt.rn.f32 %f2, %f1; mov.b32 %r1, %f2; st.param.b32 [root], %r1;
	ret;
}
.visible .entry calling(.param .u64 y)
{
	.reg .b32 %r<6>; .reg .b64 %rd<3>;
	.shared .align 16 .b8 tile[256];
	ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x; st.shared.u32 [tile], %r1; bar.sync 0; ld.shared.u32 %r2, [tile];
	{
	.param .b32 value; .param .b32 root;
	st.param.b32 [value], %r2; call.uni (root), rooted, (value); ld.param.b32 %r3, [root];
	}
	ld.const.u32 %r4, [weights+4]; add.u32 %r3, %r3, %r4; st.global.u32 [%rd1], %r3;
	ret;
}
"""
)
"""Kernels of one module, with variables, constants, shared memory, and a function that one of them calls."""
LINKED = """
.visible .global .align 4 .u32 count;
.visible .func (.param .b32 sum) inner(.param .b32 value)
{
	.reg .b32 %r<3>;
	ld.param.u32 %r1, [value]; atom.global.add.u32 %r2, [count], %r1; st.param.b32 [sum], %r2;
	ret;
}
.visible .func (.param .b32 sum) outer(.param .b32 value)
{
	.reg .b32 %r<4>;
	ld.param.u32 %r1, [value];
	{
	.param .b32 given; .param .b32 got;
	st.param.b32 [given], %r1; call.uni (got), inner, (given); ld.param.b32 %r2, [got];
	}
	add.u32 %r3, %r2, 3; st.param.b32 [sum], %r3;
	ret;
}
.visible .global .align 8 .u64 steps[2] = {inner, outer};
.visible .entry direct(.param .u64 y)
{
	.reg .b32 %r<3>; .reg .b64 %rd<2>;
	ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x;
	{
	.param .b32 given; .param .b32 got;
	st.param.b32 [given], %r1; call.uni (got), outer, (given); ld.param.b32 %r2, [got];
	}
	st.global.u32 [%rd1], %r2;
	ret;
}
.visible .entry alone(.param .u64 y)
{
	.reg .b32 %r<2>; .reg .b64 %rd<2>;
	ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1;
	ret;
}
.visible .entry telling(.param .u64 y)
{
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [y]; mov.u64 %rd2, inner; st.global.u64 [%rd1], %rd2;
	ret;
}
.visible .entry indirect(.param .u64 y, .param .u64 function)
{
	.reg .b32 %r<3>; .reg .b64 %rd<3>;
	ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [function]; mov.u32 %r1, %tid.x;
	{
	.param .b32 given; .param .b32 got;
	st.param.b32 [given], %r1;
	kind: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (got), %rd2, (given), kind;
	ld.param.b32 %r2, [got];
	}
	st.global.u32 [%rd1], %r2;
	ret;
}
.visible .entry by_table(.param .u64 y)
{
	.reg .b32 %r<3>; .reg .b64 %rd<5>;
	ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x;
	mov.u64 %rd2, steps; mul.wide.u32 %rd4, %r1, 8; add.s64 %rd2, %rd2, %rd4; ld.global.u64 %rd3, [%rd2];
	{
	.param .b32 given; .param .b32 got;
	st.param.b32 [given], %r1;
	kind: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (got), %rd3, (given), kind;
	ld.param.b32 %r2, [got];
	}
	st.global.u32 [%rd1], %r2;
	ret;
}
"""
"""Functions that keep sections of their own when they are linked, and kernels that reach them in different ways."""
OWN_TABLE = (
    LINKED
    + """
.global .align 8 .u64 $table[2] = {outer, inner};
.visible .entry by_own_table(.param .u64 y)
{
	.reg .b32 %r<3>; .reg .b64 %rd<5>;
	ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x;
	mov.u64 %rd2, $table; mul.wide.u32 %rd4, %r1, 8; add.s64 %rd2, %rd2, %rd4; ld.global.u64 %rd3, [%rd2];
	{
	.param .b32 given; .param .b32 got;
	st.param.b32 [given], %r1;
	kind: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (got), %rd3, (given), kind;
	ld.param.b32 %r2, [got];
	}
	st.global.u32 [%rd1], %r2;
	ret;
}
"""
)
"""With a table of functions that no program can name, so that a graft has one of its own."""
