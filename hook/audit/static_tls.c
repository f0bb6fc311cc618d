#include "static_tls.h"

#include <elf.h>
#include <stddef.h>

#include "system.h"

/* With one audit library glibc reserves 288 bytes more than without, 144 each for the C library and for others; ours
 * needs none of them. Up to this sum, libraries that are opened later find about as much as they would without us. */
enum { MOST_BYTES = 512, MOST_HEADERS = 64 };

static size_t needed;

static bool has_static_tls(const struct link_map *library)
{
    for (const ElfW(Dyn) *entry = library->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_FLAGS)
            return entry->d_un.d_val & DF_STATIC_TLS;
    return false;
}

static bool read_at(int file, void *to, size_t size, size_t offset)
{
    return system_read_at(file, to, size, offset) == (long)size;
}

/* Out of the file, since its header need not be in memory. */
static size_t size_in(int file)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) entries[MOST_HEADERS];
    if (!read_at(file, &header, sizeof header, 0) || header.e_phnum > MOST_HEADERS ||
        !read_at(file, entries, header.e_phnum * sizeof *entries, header.e_phoff))
        return 0;
    for (unsigned i = 0; i < header.e_phnum; i++)
        if (entries[i].p_type == PT_TLS)
            return entries[i].p_memsz + entries[i].p_align;
    return 0;
}

bool static_tls_is_short_with(const struct link_map *library)
{
    if (!*library->l_name || !has_static_tls(library))
        return false;
    const long file = system_open(library->l_name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    needed += size_in((int)file);
    system_close((int)file);
    return needed > MOST_BYTES;
}
