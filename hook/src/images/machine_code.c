#define _GNU_SOURCE
#include "machine_code.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image_formats.h"
#include "transfer.h"

#define MOST_OF_ONE ((size_t)64 << 20)
#define MOST_OF_ALL ((size_t)256 << 20)

static atomic_size_t copied; /* bytes that copies hold */

/* Beginnings of the names of NVIDIA's libraries whose licences are not those of open software. */
static const char *const closed_libraries[] = {
    "libcublas", "libcudnn",  "libcusparse", "libcufft",      "libcusolver",     "libcurand",       "libnvrtc",
    "libnpp",    "libnvjpeg", "libnvshmem",  "libcutensor",   "libnvinfer",      "libcudss",        "libnvJitLink",
    "libnvcomp", "libnvtiff", "libcupti",    "libcustatevec", "libcudensitymat", "libnvonnxparser",
};

/* Beginnings of the names of kernels, or of their outermost namespaces, that no other library uses. */
static const char *const closed_names[] = {
    "cublas", "cudnn", "cusparse", "cufft", "cusolver", "cutensor", "nvjet_", "nvjpeg", "nvshmem",
};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static char *closed_library(const char *path)
{
    const char *name = path ? base_of(path) : "";
    for (size_t i = 0; i < sizeof closed_libraries / sizeof *closed_libraries; i++)
        if (strncmp(name, closed_libraries[i], strlen(closed_libraries[i])) == 0)
            return strdup(name);
    return NULL;
}

/* Names of C++ are "_ZN6cublas…", "_Z11cublas_scal…"; those of C are as they are. */
const char *machine_code_closed_name(const char *kernel)
{
    const char *name = kernel;
    if (strncmp(name, "_Z", 2) == 0) {
        name += 2;
        name += *name == 'N';
        name += strspn(name, "0123456789");
    }
    for (size_t i = 0; i < sizeof closed_names / sizeof *closed_names; i++)
        if (strncmp(name, closed_names[i], strlen(closed_names[i])) == 0)
            return closed_names[i];
    return NULL;
}

/* A place in a file that the dynamic linker has mapped. */
struct mapped {
    const char *address;
    size_t size;
    const char *path; /* NULL: not found */
    off_t offset;
};

static int look_in(struct dl_phdr_info *object, size_t size, void *argument)
{
    struct mapped *mapped = argument;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t at = (uintptr_t)mapped->address, start = (uintptr_t)(object->dlpi_addr + segment->p_vaddr);
        if (segment->p_type != PT_LOAD || at < start || at - start > segment->p_filesz ||
            segment->p_filesz - (at - start) < mapped->size)
            continue;
        mapped->path = *object->dlpi_name ? object->dlpi_name : "/proc/self/exe";
        mapped->offset = (off_t)(segment->p_offset + (at - start));
        return 1;
    }
    return 0;
}

bool machine_code_is_mapped(const void *bytes, size_t size)
{
    return dl_iterate_phdr(look_in, &(struct mapped){.address = bytes, .size = size});
}

bool machine_code_place(const struct machine_code *code, struct digest *digest)
{
    const uint64_t place[] = {(uint64_t)code->device,
                              (uint64_t)code->inode,
                              (uint64_t)code->file_size,
                              (uint64_t)code->modified.tv_sec,
                              (uint64_t)code->modified.tv_nsec,
                              (uint64_t)code->offset,
                              (uint64_t)code->size,
                              code->fingerprint};
    if (!code->path)
        return false;
    *digest = digest_more(digest_of(place, sizeof place), code->first, CODE_FIRST_BYTES);
    return true;
}

/* Notes where the file has it. False if there is no such file. */
static bool note_place(struct machine_code *code, const char *path, off_t offset)
{
    struct stat status;
    code->path = realpath(path, NULL);
    if (!code->path || stat(code->path, &status) != 0)
        return false;
    code->offset = offset;
    code->file_size = status.st_size;
    code->device = status.st_dev;
    code->inode = status.st_ino;
    code->modified = status.st_mtim;
    return true;
}

static bool note_file(struct machine_code *code, const void *bytes, const struct origin *origin)
{
    struct mapped mapped = {.address = bytes, .size = code->size};
    if (!origin->path)
        dl_iterate_phdr(look_in, &mapped);
    else
        mapped.path = origin->path; /* all of it */
    if (!mapped.path || !note_place(code, mapped.path, mapped.offset)) {
        free(code->path);
        code->path = NULL;
        return false;
    }
    memcpy(code->first, bytes, code->size < CODE_FIRST_BYTES ? code->size : CODE_FIRST_BYTES);
    code->fingerprint = code->is_fatbin ? fatbin_fingerprint(bytes, code->size) : 0;
    code->closed = closed_library(code->path);
    return true;
}

/* Copies what there is of machine code in an image of SIZE bytes; code->size is that of the copy. */
static const struct reason *copy(struct machine_code *code, const void *bytes, size_t size)
{
    char number[REASON_NUMBER_SIZE];
    if (code->size > MOST_OF_ONE)
        return reason_with(CODE_TOO_LARGE, reason_number(number, code->size));
    if (atomic_fetch_add(&copied, code->size) + code->size > MOST_OF_ALL) {
        atomic_fetch_sub(&copied, code->size);
        return reason(CODE_COPIES_FULL);
    }
    if (!(code->copy = malloc(code->size))) {
        atomic_fetch_sub(&copied, code->size);
        return reason(HOST_MEMORY);
    }
    if (code->is_fatbin)
        fatbin_copy(bytes, size, FATBIN_ANY_CODE, code->copy);
    else
        memcpy(code->copy, bytes, code->size);
    return NULL;
}

struct machine_code *machine_code_keep(const void *bytes, size_t size, bool is_fatbin, const struct origin *origin)
{
    const size_t present = is_fatbin ? fatbin_kept_size(bytes, size, FATBIN_ANY_CODE) : size;
    Dl_info caller;
    struct machine_code *code = present ? calloc(1, sizeof *code) : NULL;
    if (!code)
        return NULL;
    code->is_fatbin = is_fatbin;
    code->size = size;
    code->most = is_fatbin ? fatbin_largest_code(bytes, size) : size;
    if (note_file(code, bytes, origin))
        return code;
    code->size = present;
    if (origin->caller && dladdr(origin->caller, &caller))
        code->closed = closed_library(caller.dli_fname);
    code->lost = copy(code, bytes, size);
    return code;
}

void machine_code_free(struct machine_code *code)
{
    if (!code)
        return;
    if (code->copy)
        atomic_fetch_sub(&copied, code->size);
    free(code->copy);
    free(code->path);
    free(code->closed);
    free(code);
}

static bool is_as_it_was(int file, const struct machine_code *code)
{
    struct stat now;
    return fstat(file, &now) == 0 && now.st_dev == code->device && now.st_ino == code->inode &&
           now.st_size == code->file_size && now.st_mtim.tv_sec == code->modified.tv_sec &&
           now.st_mtim.tv_nsec == code->modified.tv_nsec;
}

struct file_range {
    int file;
    uint8_t *bytes;
    off_t offset;
};

static ssize_t read_part(const void *argument, size_t done, size_t left)
{
    const struct file_range *range = argument;
    return pread(range->file, range->bytes + done, left, range->offset + (off_t)done);
}

static bool has_same_content(const struct machine_code *code, const uint8_t *bytes)
{
    return memcmp(bytes, code->first, code->size < CODE_FIRST_BYTES ? code->size : CODE_FIRST_BYTES) == 0 &&
           (!code->is_fatbin || fatbin_fingerprint(bytes, code->size) == code->fingerprint);
}

static const struct reason *read_file(const struct machine_code *code, uint8_t *bytes)
{
    int file = open(code->path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return reason_of_file(code->path, errno);
    const struct file_range range = {file, bytes, code->offset};
    const struct reason *reason = NULL;
    if (!is_as_it_was(file, code) || !transfer_all(read_part, &range, code->size) || !has_same_content(code, bytes))
        reason = reason_with(CODE_CHANGED, code->path);
    close(file);
    return reason;
}

const struct reason *machine_code_read(const struct machine_code *code, const uint8_t **bytes)
{
    if (code->lost)
        return code->lost;
    if (code->copy) {
        *bytes = code->copy;
        return NULL;
    }
    uint8_t *read = malloc(code->size);
    if (!read)
        return reason(HOST_MEMORY);
    const struct reason *reason = read_file(code, read);
    if (reason)
        free(read);
    else
        *bytes = read;
    return reason;
}

void machine_code_leave(const struct machine_code *code, const uint8_t *bytes)
{
    if (bytes != code->copy)
        free((void *)(uintptr_t)bytes);
}
