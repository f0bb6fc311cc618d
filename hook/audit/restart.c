#include "restart.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "system.h"
#include "text.h"

static const char own_name[] = "/libtui-probe-audit.so";

/* The path that the process was executed by; a script's own, which then is interpreted anew. */
static const char *executed_path(char **environment)
{
    while (*environment)
        environment++;
    for (const ElfW(auxv_t) *entry = (const ElfW(auxv_t) *)(environment + 1); entry->a_type != AT_NULL; entry++)
        if (entry->a_type == AT_EXECFN)
            return (const char *)entry->a_un.a_val;
    return NULL;
}

static bool is_preloaded(char **environment, const char *hook)
{
    for (; *environment; environment++)
        if (text_after(*environment, "LD_PRELOAD=") && text_contains(*environment, hook))
            return true;
    return false;
}

/* "LD_AUDIT=a:b:ours" becomes "LD_AUDIT=a:b"; false if it has no other entry. Ours is the last. */
static bool drop_own_entry(char *variable)
{
    char *entry = variable + sizeof "LD_AUDIT=" - 1, *last = NULL;
    for (; *entry; entry++)
        if (*entry == ':' && text_contains(entry, own_name))
            last = entry;
    if (last)
        *last = '\0';
    return last;
}

static void leave_out_of(char **environment)
{
    char **next = environment;
    for (; *environment; environment++)
        if (!text_after(*environment, "LD_AUDIT=") || !text_contains(*environment, own_name) ||
            drop_own_entry(*environment))
            *next++ = *environment;
    *next = NULL;
}

void restart_preloaded(char **arguments, char **environment, const char *hook)
{
    const char *path = executed_path(environment);
    if (!path || !is_preloaded(environment, hook))
        return;
    leave_out_of(environment);
    system_execute(path, arguments, environment);
}
