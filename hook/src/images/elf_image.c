#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "image_formats.h"

static bool header_of(const void *bytes, size_t limit, Elf64_Ehdr *header)
{
    if (limit < sizeof *header)
        return false;
    memcpy(header, bytes, sizeof *header);
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64;
}

static bool section_of(const void *bytes, size_t limit, const Elf64_Ehdr *header, unsigned index, Elf64_Shdr *section)
{
    if (header->e_shentsize != sizeof *section || index >= header->e_shnum || header->e_shoff > limit)
        return false;
    size_t offset = (size_t)index * sizeof *section;
    if (limit - header->e_shoff < offset + sizeof *section)
        return false;
    memcpy(section, (const char *)bytes + header->e_shoff + offset, sizeof *section);
    return true;
}

static bool raise_end(size_t *end, uint64_t offset, uint64_t length, size_t limit)
{
    if (offset > limit || length > limit - offset)
        return false;
    if (offset + length > *end)
        *end = (size_t)(offset + length);
    return true;
}

bool elf_is(const void *bytes, size_t limit)
{
    return limit >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

/* Besides SHT_NOBITS the kinds that CUDA has: global, local and shared memory without initial values. */
static bool has_bytes(const Elf64_Shdr *section)
{
    const uint32_t type = section->sh_type;
    return type != SHT_NOBITS && type != 0x70000007 && type != 0x70000009 && type != 0x7000000a;
}

size_t elf_size(const void *bytes, size_t limit)
{
    Elf64_Ehdr header;
    Elf64_Shdr section;
    size_t end = sizeof header;
    if (!header_of(bytes, limit, &header) ||
        !raise_end(&end, header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize, limit) ||
        !raise_end(&end, header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize, limit))
        return 0;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        if (!section_of(bytes, limit, &header, i, &section))
            return 0;
        if (has_bytes(&section) && !raise_end(&end, section.sh_offset, section.sh_size, limit))
            return 0;
    }
    return end;
}

/* True if a name is this one, or begins so before a dot: a cubin that was linked from several has numbered sections. */
static bool name_is(const char *names, size_t size, uint64_t at, const char *name)
{
    size_t length = strlen(name);
    return at < size && size - at > length && memcmp(names + at, name, length) == 0 &&
           (names[at + length] == '\0' || names[at + length] == '.');
}

bool elf_has_section(const void *bytes, size_t size, const char *name)
{
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    if (!header_of(bytes, size, &header) || !section_of(bytes, size, &header, header.e_shstrndx, &names) ||
        names.sh_offset > size || names.sh_size > size - names.sh_offset)
        return false;
    for (unsigned i = 0; i < header.e_shnum; i++)
        if (section_of(bytes, size, &header, i, &section) &&
            name_is((const char *)bytes + names.sh_offset, names.sh_size, section.sh_name, name))
            return true;
    return false;
}
