# Compiles the C parts for wheels: the clang of Zig links with the symbols of glibc 2.17, whatever this machine has.
#
# Reads the environment variables ZIG (path of the program) and WHEEL_ARCHITECTURE (x86_64 or aarch64), which also reach
# the projects with which CMake checks the compiler.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{WHEEL_ARCHITECTURE})
foreach(language C ASM)
  set(CMAKE_${language}_COMPILER $ENV{ZIG} cc -target $ENV{WHEEL_ARCHITECTURE}-linux-gnu.2.17)
endforeach()
# The linker of Zig strips, since the strip of this machine reads its own architecture only.
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -s)
