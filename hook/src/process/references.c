#define _GNU_SOURCE
#include "references.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader.h"

#if defined(__x86_64__)
enum { BY_SLOT = R_X86_64_JUMP_SLOT, BY_ADDRESS = R_X86_64_GLOB_DAT, IN_DATA = R_X86_64_64 };
#elif defined(__aarch64__)
enum { BY_SLOT = R_AARCH64_JUMP_SLOT, BY_ADDRESS = R_AARCH64_GLOB_DAT, IN_DATA = R_AARCH64_ABS64 };
#endif

struct wanted {
    const struct reference *list;
    size_t count;
};

/* The parts of an object that report its references. */
struct object {
    uintptr_t base, constant_begin, constant_end; /* what is written only while it is loaded */
    const ElfW(Phdr) * headers;
    size_t n_headers;
    const char *names;
    const ElfW(Sym) * symbols;
    const ElfW(Rela) * tables[2];
    size_t sizes[2];
    size_t n_relative; /* at the start of the first table; they have no symbol */
};

static uintptr_t page_of(uintptr_t address)
{
    return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* glibc has relocated the addresses of a dynamic section, other loaders have not. */
static const void *address(const struct object *object, ElfW(Addr) value)
{
    return (const void *)(value < object->base ? value + object->base : value);
}

static void read_dynamic(struct object *object, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++)
        switch (entry->d_tag) {
        case DT_STRTAB:
            object->names = address(object, entry->d_un.d_ptr);
            break;
        case DT_SYMTAB:
            object->symbols = address(object, entry->d_un.d_ptr);
            break;
        case DT_RELA:
            object->tables[0] = address(object, entry->d_un.d_ptr);
            break;
        case DT_RELASZ:
            object->sizes[0] = entry->d_un.d_val;
            break;
        case DT_RELACOUNT:
            object->n_relative = entry->d_un.d_val;
            break;
        case DT_JMPREL:
            object->tables[1] = address(object, entry->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            object->sizes[1] = entry->d_un.d_val;
            break;
        }
}

static struct object read_object(const struct dl_phdr_info *info)
{
    struct object object = {.base = info->dlpi_addr, .headers = info->dlpi_phdr, .n_headers = info->dlpi_phnum};
    for (size_t i = 0; i < object.n_headers; i++) {
        const ElfW(Phdr) *header = &object.headers[i];
        if (header->p_type == PT_DYNAMIC)
            read_dynamic(&object, (const ElfW(Dyn) *)(object.base + header->p_vaddr));
        if (header->p_type == PT_GNU_RELRO) {
            object.constant_begin = page_of(object.base + header->p_vaddr);
            object.constant_end = page_of(object.base + header->p_vaddr + header->p_memsz);
        }
    }
    return object;
}

static bool contains(const struct object *object, uintptr_t place, unsigned flags)
{
    for (size_t i = 0; i < object->n_headers; i++) {
        const ElfW(Phdr) *header = &object->headers[i];
        if (header->p_type == PT_LOAD && (header->p_flags & flags) == flags &&
            place - object->base - header->p_vaddr < header->p_memsz)
            return true;
    }
    return false;
}

static void write_reference(const struct object *object, uintptr_t place, void *ours)
{
    const uintptr_t page = page_of(place),
                    size = page_of(place + sizeof ours - 1) - page + (uintptr_t)sysconf(_SC_PAGESIZE);
    const bool constant = place >= object->constant_begin && place < object->constant_end;
    if (constant && mprotect((void *)page, size, PROT_READ | PROT_WRITE) != 0)
        return;
    __atomic_store_n((void **)place, ours, __ATOMIC_RELEASE);
    if (constant)
        mprotect((void *)page, size, PROT_READ);
}

static void redirect_one(const struct object *object, const ElfW(Rela) * relocation, const struct wanted *wanted)
{
    const unsigned type = (unsigned)ELF64_R_TYPE(relocation->r_info);
    const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
    const uintptr_t place = object->base + relocation->r_offset;
    if ((type != BY_SLOT && type != BY_ADDRESS && type != IN_DATA) || symbol->st_shndx != SHN_UNDEF ||
        relocation->r_addend != 0 || place % sizeof(void *) != 0 || !contains(object, place, PF_W))
        return;
    for (size_t i = 0; i < wanted->count; i++)
        if (strcmp(object->names + symbol->st_name, wanted->list[i].name) == 0)
            write_reference(object, place, wanted->list[i].ours);
}

static int redirect_in(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    const struct object object = read_object(info);
    if (!object.names || !object.symbols || contains(&object, (uintptr_t)redirect_in, PF_X))
        return 0;
    for (size_t table = 0; table < 2; table++)
        for (size_t i = table == 0 ? object.n_relative : 0;
             object.tables[table] && i < object.sizes[table] / sizeof(ElfW(Rela)); i++)
            redirect_one(&object, &object.tables[table][i], context);
    return 0;
}

void references_redirect(const struct reference *list, size_t count)
{
    struct wanted wanted = {list, count};
    dl_iterate_phdr(redirect_in, &wanted);
}

/* RTLD_DEFAULT begins with this library, which is linked symbolically. */
void *references_next(const char *name, const void *ours)
{
    void *program = loader_open(NULL, RTLD_LAZY);
    void *address = program ? dlsym(program, name) : NULL;
    return address && address != ours ? address : dlsym(RTLD_NEXT, name);
}
