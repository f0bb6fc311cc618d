# A trampoline is a tail jump to the real driver's function of the same name, through a table that
# is filled on the first call: no signature is needed, and registers and stack arrive untouched.

set(TRAMPOLINE_X86_64 [[
    .p2align 4
    .globl @name@
    .type @name@, @function
@name@:
    endbr64
    movq trampoline_table+8*@index@(%rip), %r11
    testq %r11, %r11
    jz 1f
    jmp *%r11
1:  movl $@index@, %r11d
    jmp trampoline_resolve
    .size @name@, . - @name@
]])

set(TRAMPOLINE_AARCH64 [[
    .p2align 4
    .globl @name@
    .type @name@, %function
@name@:
    hint #34
    adrp x16, trampoline_table+8*@index@
    ldr x16, [x16, #:lo12:trampoline_table+8*@index@]
    cbz x16, 1f
    br x16
1:  mov w16, #@index@
    b trampoline_resolve
    .size @name@, . - @name@
]])

# Writes the assembly for one processor; CMake compiles the file only where its guard holds.
function(generate_trampolines directory)
  set(symbols_file ${CMAKE_CURRENT_SOURCE_DIR}/symbols.txt)
  set(wrapped_file ${CMAKE_CURRENT_SOURCE_DIR}/src/driver/wrapped.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${symbols_file} ${wrapped_file})
  file(STRINGS ${symbols_file} names REGEX "^[A-Za-z_][A-Za-z0-9_]*$")
  file(STRINGS ${wrapped_file} wrapped REGEX "^WRAPPED\\(")
  list(TRANSFORM wrapped REPLACE "^WRAPPED\\(([A-Za-z0-9_]+)\\)$" "\\1")
  list(REMOVE_ITEM names ${wrapped})
  # cuda-gdb finds cudbg* in the program by name, reads and writes them, and sets breakpoints on them. If the hook
  # exported them too, the debugger would find those of the hook, which the driver never reads. cudbgGetAPI and
  # cudbgGetAPIVersion are for callers.
  list(FILTER names EXCLUDE REGEX "^cudbg[^G]")

  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(template "${TRAMPOLINE_X86_64}")
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(template "${TRAMPOLINE_AARCH64}")
  else()
    message(FATAL_ERROR "The hook runs on x86-64 and aarch64, not on ${CMAKE_SYSTEM_PROCESSOR}.")
  endif()

  list(LENGTH names count)
  set(jumps "")
  set(strings "")
  set(index 0)
  foreach(name IN LISTS names)
    string(CONFIGURE "${template}" jump @ONLY)
    string(APPEND jumps "${jump}")
    string(APPEND strings "    \"${name}\",\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${directory}/trampolines.S @ONLY CONTENT
"    .text
    .hidden trampoline_table
    .hidden trampoline_resolve
@jumps@
    .section .note.GNU-stack, \"\", %progbits
")
  file(CONFIGURE OUTPUT ${directory}/trampoline_names.c @ONLY CONTENT
"#include \"trampoline.h\"

const size_t trampoline_count = @count@;
const char *const trampoline_names[@count@] = {
@strings@};
_Atomic(void *) trampoline_table[@count@];
")
  set(TRAMPOLINE_SOURCES ${directory}/trampolines.S ${directory}/trampoline_names.c
      ${CMAKE_CURRENT_SOURCE_DIR}/src/driver/trampoline_resolve.S PARENT_SCOPE)
endfunction()
