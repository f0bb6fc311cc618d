/* long syscall(long number, ...), before that of the C library. All arguments stay where they are, and nothing is put on
 * the stack: programs call it in loops (futex, gettid), and with clone, after which the caller's frame may be gone. */
#include "system_call.h"

    .text
    .globl syscall
#if defined(__x86_64__)
    .type syscall, @function
syscall:
    .cfi_startproc
    endbr64
    cmpq $SYSTEM_CALLS, %rdi
    jae .Lpass
    leaq system_call_watched(%rip), %rax
    cmpb $0, (%rax, %rdi)
    jne .Lwatch
.Lpass:
    jmp *system_call_next(%rip)
.Lwatch:
    jmp *system_call_watcher(%rip)
    .cfi_endproc
#elif defined(__aarch64__)
    .type syscall, %function
syscall:
    .cfi_startproc
    hint #34 /* bti c */
    cmp x0, #SYSTEM_CALLS
    b.hs .Lpass
    adrp x16, system_call_watched
    add x16, x16, :lo12:system_call_watched
    ldrb w16, [x16, x0]
    cbnz w16, .Lwatch
.Lpass:
    adrp x16, system_call_next
    ldr x16, [x16, :lo12:system_call_next]
    br x16
.Lwatch:
    adrp x16, system_call_watcher
    ldr x16, [x16, :lo12:system_call_watcher]
    br x16
    .cfi_endproc
#else
#error "unknown architecture"
#endif
    .size syscall, . - syscall

    .section .note.GNU-stack, "", %progbits
