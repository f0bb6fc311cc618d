/* Fails single calls that the hook makes: of the C library, and of the driver.
 *
 * To be preloaded next to it. Environment: FAULT_LIBRARY part of the hook's path; FAULT_SITES file that receives "KIND OFFSET"
 * for each place in the hook that calls something which can fail, when it is met first; FAULT_SITE the offset of the place
 * whose call fails, in hexadecimal; FAULT_NTH which of its calls, counted from 1, or 0 for each; FAULT_ERROR what a call of
 * the driver then returns, 999 (unknown) by default. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define CALLER ((uintptr_t)__builtin_return_address(0))

enum { MOST_SITES = 4096, MOST_FUNCTIONS = 700, UNKNOWN_ERROR = 999 };

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t n, size_t size), *__libc_realloc(void *old, size_t size);

static uintptr_t base, end;
static atomic_uintptr_t met[MOST_SITES];
static atomic_long calls;

static int find_hook(struct dl_phdr_info *info, size_t size, void *unused)
{
    const char *library = getenv("FAULT_LIBRARY");
    (void)size, (void)unused;
    if (!library || !strstr(info->dlpi_name, library))
        return 0;
    base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && base + part->p_vaddr + part->p_memsz > end)
            end = base + part->p_vaddr + part->p_memsz;
    }
    return 1;
}

static void note(const char *kind, uintptr_t offset)
{
    const char *path = getenv("FAULT_SITES");
    for (int i = 0; path && i < MOST_SITES; i++) {
        uintptr_t none = 0;
        if (atomic_compare_exchange_strong(&met[i], &none, offset)) {
            char line[64];
            const int length = snprintf(line, sizeof line, "%s %lx\n", kind, (unsigned long)offset);
            const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
            syscall(SYS_write, file, line, length);
            syscall(SYS_close, file);
            return;
        }
        if (none == offset)
            return;
    }
}

static bool is_due(const char *kind, uintptr_t caller)
{
    const char *site = getenv("FAULT_SITE"), *nth = getenv("FAULT_NTH");
    const int error = errno;
    if (!end)
        dl_iterate_phdr(find_hook, NULL);
    if (caller < base || caller >= end)
        return false;
    note(kind, caller - base);
    errno = error;
    if (!site || strtoul(site, NULL, 16) != caller - base)
        return false;
    const long number = atomic_fetch_add(&calls, 1) + 1, wanted = nth ? atol(nth) : 0;
    return !wanted || wanted == number;
}

static bool refuses(const char *kind, uintptr_t caller, int error)
{
    const bool due = is_due(kind, caller);
    if (due)
        errno = error;
    return due;
}

/* Allocations. */

API void *malloc(size_t size)
{
    return refuses("allocation", CALLER, ENOMEM) ? NULL : __libc_malloc(size);
}
API void *calloc(size_t n, size_t size)
{
    return refuses("allocation", CALLER, ENOMEM) ? NULL : __libc_calloc(n, size);
}
API void *realloc(void *old, size_t size)
{
    return refuses("allocation", CALLER, ENOMEM) ? NULL : __libc_realloc(old, size);
}
API char *strndup(const char *text, size_t most)
{
    const size_t length = strnlen(text, most);
    char *copy = refuses("allocation", CALLER, ENOMEM) ? NULL : __libc_malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}
API char *strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = refuses("allocation", CALLER, ENOMEM) ? NULL : __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}
API int asprintf(char **text, const char *format, ...)
{
    va_list arguments;
    if (refuses("allocation", CALLER, ENOMEM)) {
        *text = NULL;
        return -1;
    }
    va_start(arguments, format);
    const int length = vasprintf(text, format, arguments);
    va_end(arguments);
    return length;
}

/* Files, sockets, threads. */

#define NEXT(name) ((__typeof__(name) *)(uintptr_t)dlsym(RTLD_NEXT, #name))
#define FAILS(name, result, kind, error, parameters, arguments)    \
    API result name parameters                                     \
    {                                                              \
        static __typeof__(name) *real;                             \
        if (!real)                                                 \
            real = NEXT(name);                                     \
        return refuses(kind, CALLER, error) ? -1 : real arguments; \
    }

FAILS(write, ssize_t, "write", ENOSPC, (int file, const void *bytes, size_t size), (file, bytes, size))
FAILS(pwrite, ssize_t, "write", EIO, (int file, const void *bytes, size_t size, off_t at), (file, bytes, size, at))
FAILS(ftruncate, int, "write", EDQUOT, (int file, off_t size), (file, size))
FAILS(mkdir, int, "write", ENOSPC, (const char *path, mode_t mode), (path, mode))
FAILS(read, ssize_t, "file", EIO, (int file, void *bytes, size_t size), (file, bytes, size))
FAILS(fstat, int, "file", EIO, (int file, struct stat *status), (file, status))
FAILS(socket, int, "engine", EMFILE, (int family, int type, int protocol), (family, type, protocol))
FAILS(connect, int, "engine", ECONNREFUSED, (int file, const struct sockaddr *address, socklen_t size),
      (file, address, size))
FAILS(send, ssize_t, "engine", EPIPE, (int file, const void *bytes, size_t size, int flags), (file, bytes, size, flags))
FAILS(recv, ssize_t, "engine", ECONNRESET, (int file, void *bytes, size_t size, int flags), (file, bytes, size, flags))
FAILS(poll, int, "engine", EIO, (struct pollfd * files, nfds_t n, int milliseconds), (files, n, milliseconds))
FAILS(sem_init, int, "thread", EINVAL, (sem_t * semaphore, int shared, unsigned value), (semaphore, shared, value))

API int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (refuses("file", CALLER, EMFILE))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
API int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (refuses("file", CALLER, EACCES))
        return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}
API FILE *fopen(const char *path, const char *mode)
{
    return refuses("file", CALLER, EMFILE) ? NULL : NEXT(fopen)(path, mode);
}
API DIR *opendir(const char *path)
{
    return refuses("file", CALLER, EMFILE) ? NULL : NEXT(opendir)(path);
}
API void *mmap(void *address, size_t size, int protection, int flags, int file, off_t at)
{
    if (refuses("file", CALLER, ENOMEM))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, size, protection, flags, file, at);
}
API int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    return is_due("thread", CALLER) ? EAGAIN : NEXT(pthread_create)(thread, attributes, body, argument);
}

/* The driver: what dlsym gives the hook is a piece of code that looks who calls. */

void *functions[MOST_FUNCTIONS];
static atomic_int n_functions;
extern char function_codes[];
enum { CODE_BYTES = 16 };

/* -1: call the function. */
__attribute__((used)) int outcome_of_call(uintptr_t caller);
int outcome_of_call(uintptr_t caller)
{
    const char *error = getenv("FAULT_ERROR");
    if (!is_due("driver", caller))
        return -1;
    return error ? atoi(error) : UNKNOWN_ERROR;
}

__asm__(".text\n"
        "call_or_fail:\n"
        "    push %rdi\n    push %rsi\n    push %rdx\n    push %rcx\n    push %r8\n    push %r9\n    push %r11\n"
        "    mov 56(%rsp), %rdi\n"
        "    call outcome_of_call\n"
        "    pop %r11\n    pop %r9\n    pop %r8\n    pop %rcx\n    pop %rdx\n    pop %rsi\n    pop %rdi\n"
        "    cmp $-1, %eax\n"
        "    jne 1f\n"
        "    lea functions(%rip), %rax\n"
        "    jmp *(%rax,%r11,8)\n"
        "1:  ret\n"
        ".balign 16\n"
        "function_codes:\n"
        ".set number, 0\n"
        ".rept 700\n"
        "    .balign 16\n"
        "    mov $number, %r11d\n"
        "    jmp call_or_fail\n"
        "    .set number, number + 1\n"
        ".endr\n");

static void *c_library(void)
{
    static void *(*open)(const char *, int);
    if (!open)
        open = (void *(*)(const char *, int))(uintptr_t)dlvsym(RTLD_DEFAULT, "dlopen", "GLIBC_2.34");
    if (!open)
        open = (void *(*)(const char *, int))(uintptr_t)dlvsym(RTLD_DEFAULT, "dlopen", "GLIBC_2.2.5");
    return open("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
}

API void *dlsym(void *handle, const char *name)
{
    static void *(*real)(void *, const char *);
    if (!real)
        real = (void *(*)(void *, const char *))(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real)
        real = (void *(*)(void *, const char *))(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!end)
        dl_iterate_phdr(find_hook, NULL);
    /* what is next after us may be the hook, which asks for what is next after itself */
    const bool asks_for_next = handle == RTLD_NEXT && CALLER >= base && CALLER < end;
    void *symbol = real(asks_for_next ? c_library() : handle, name);
    if (!symbol || strncmp(name, "cu", 2) != 0 || CALLER < base || CALLER >= end)
        return symbol;
    const int number = atomic_fetch_add(&n_functions, 1);
    if (number >= MOST_FUNCTIONS)
        return symbol;
    functions[number] = symbol;
    return function_codes + (size_t)number * CODE_BYTES;
}
