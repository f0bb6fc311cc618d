/* dlopen and dlmopen: with the name that loader.c chooses, jump to the C library's as if the caller had called that. By
 * the return address it tells whose search path and whose list of libraries is meant. */
    .text
    .hidden loader_name
    .hidden loader_name_in
    .hidden loader_next_dlopen
    .hidden loader_next_dlmopen
    .globl dlopen
    .globl dlmopen
#if defined(__x86_64__)
    .p2align 4
    .type dlopen, @function
dlopen:
    .cfi_startproc
    endbr64
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $16, %rsp
    .cfi_adjust_cfa_offset 16
    movq 24(%rsp), %rsi
    call loader_name
    movq %rax, 0(%rsp)
    call loader_next_dlopen
    movq %rax, %r11
    movq 0(%rsp), %rdi
    addq $16, %rsp
    .cfi_adjust_cfa_offset -16
    popq %rsi
    .cfi_adjust_cfa_offset -8
    testq %r11, %r11
    jz loader_missing
    jmp *%r11
    .cfi_endproc
    .size dlopen, . - dlopen
    .p2align 4
    .type dlmopen, @function
dlmopen:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rdx
    call loader_name_in
    movq %rax, 0(%rsp)
    call loader_next_dlmopen
    movq %rax, %r11
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %r11, %r11
    jz loader_missing
    jmp *%r11
    .cfi_endproc
    .size dlmopen, . - dlmopen
    .type loader_missing, @function
loader_missing:
    xorl %eax, %eax
    ret
    .size loader_missing, . - loader_missing
#elif defined(__aarch64__)
    .p2align 4
    .type dlopen, %function
dlopen:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    str x1, [sp, #16]
    mov x1, x30
    bl loader_name
    str x0, [sp, #24]
    bl loader_next_dlopen
    mov x16, x0
    ldp x1, x0, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    cbz x16, loader_missing
    br x16
    .cfi_endproc
    .size dlopen, . - dlopen
    .p2align 4
    .type dlmopen, %function
dlmopen:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-48]!
    .cfi_def_cfa_offset 48
    .cfi_offset 29, -48
    .cfi_offset 30, -40
    mov x29, sp
    stp x0, x2, [sp, #16]
    mov x2, x30
    bl loader_name_in
    str x0, [sp, #32]
    bl loader_next_dlmopen
    mov x16, x0
    ldp x0, x2, [sp, #16]
    ldr x1, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_def_cfa_offset 0
    cbz x16, loader_missing
    br x16
    .cfi_endproc
    .size dlmopen, . - dlmopen
    .type loader_missing, %function
loader_missing:
    mov x0, #0
    ret
    .size loader_missing, . - loader_missing
#endif
    .section .note.GNU-stack, "", %progbits
