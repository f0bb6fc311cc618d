/* The dynamic loader asks this library (LD_AUDIT) about each library that it looks for: who asks for the driver gets the
 * hook, in the scope and the list of libraries where the driver would be.
 *
 * It shares no C library with the program, so it uses none: it reads its environment once and makes few system calls. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>

#include "restart.h"
#include "static_tls.h"
#include "system.h"
#include "text.h"

/* Before glibc 2.35 an audited program calls its libraries through slow code that loses arguments on aarch64. */
enum { OLDEST_INTERFACE = 2, LINE_SIZE = 4096 + 32 };

#define EXPORTED __attribute__((visibility("default")))

/* The hook's dependency for which it gets the driver itself: names that the hook lacks are found there. */
static const char stand_in[] = "libtui-probe-driver.so";

static struct {
    const char *hook, *driver, *unseen;
    bool simulated;
} given;

static char **arguments, **environment;
static struct stat driver_file;
static bool starting = true;
static char stand_in_path[LINE_SIZE], driver_path[LINE_SIZE];

static void read_variable(const char *variable)
{
    const char *value;
    if ((value = text_after(variable, "TUI_PROBE_HOOK=")))
        given.hook = value;
    else if ((value = text_after(variable, "TUI_PROBE_DRIVER=")))
        given.driver = value;
    else if ((value = text_after(variable, "TUI_PROBE_BESIDE=")))
        given.unseen = value;
    else if (text_after(variable, "TUI_PROBE_SIM_PYTHON="))
        given.simulated = true;
}

/* The hook must be able to open the driver past this library: a path that no one else writes, for the loader finds what
 * it has loaded by name before it asks. */
static void spell_paths(void)
{
    const char *base = text_base(given.driver), *own = text_base(given.hook);
    char *end = driver_path + LINE_SIZE - 1, *at = driver_path;
    for (const char *c = given.driver; c < base && at < end;)
        *at++ = *c++;
    text_add(text_add(at, end, "./"), end, base);
    end = stand_in_path + LINE_SIZE - 1, at = stand_in_path;
    for (const char *c = given.hook; c < own && at < end;)
        *at++ = *c++;
    text_add(at, end, stand_in);
}

__attribute__((constructor)) static void read_environment(int count, char **words, char **variables)
{
    (void)count;
    arguments = words;
    environment = variables;
    for (; *variables; variables++)
        read_variable(*variables);
    if (given.hook && given.driver && text_base(given.hook) && text_base(given.driver))
        spell_paths();
    else
        given.hook = NULL;
}

/* 0: this library is not needed. */
EXPORTED unsigned la_version(unsigned newest)
{
    return newest >= OLDEST_INTERFACE && given.hook && system_access(given.hook) == 0 ? newest : 0;
}

EXPORTED void la_preinit(uintptr_t *cookie)
{
    (void)cookie;
    starting = false;
}

static bool is_driver_file(const char *path)
{
    struct stat status;
    if (!driver_file.st_ino && system_stat(given.driver, &driver_file) < 0)
        return false;
    return system_stat(path, &status) == 0 && status.st_ino == driver_file.st_ino &&
           status.st_dev == driver_file.st_dev;
}

static bool means_driver(const char *name)
{
    const char *base = text_base(name);
    if (!base)
        return text_is_driver_name(name);
    return (given.simulated && text_is_driver_name(base)) || is_driver_file(name);
}

/* The hook opens the driver; a driver that opens itself means itself. */
static bool is_one_of_both(const struct link_map *asker)
{
    return text_equal(asker->l_name, given.hook) || is_driver_file(asker->l_name);
}

/* An address in a dynamic section, which the loader may have relocated. */
static uintptr_t address(const struct link_map *map, uintptr_t value)
{
    return value < map->l_addr ? value + map->l_addr : value;
}

static const char *first_needed(const struct link_map *map)
{
    const char *names = NULL;
    const ElfW(Dyn) *needed = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            names = (const char *)address(map, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_NEEDED && !needed)
            needed = entry;
    }
    return names && needed ? names + needed->d_un.d_val : NULL;
}

/* LD_PRELOAD names the hook, as "/.HOOK", for loaders that know no audit libraries. Here the entry leads to the first
 * library of the program, which comes first anyway; where the system preloads libraries of its own, to one without
 * content, so that the order stays as it is. */
static const char *instead_of_preload(const struct link_map *program)
{
    const char *first = first_needed(program);
    return first && system_access("/etc/ld.so.preload") < 0 ? first : stand_in_path;
}

static const char *choose(const char *name, const struct link_map *asker)
{
    if (starting && !*asker->l_name && text_contains(name, given.hook))
        name = instead_of_preload(asker);
    if (text_equal(name, stand_in) && text_equal(asker->l_name, given.hook))
        return system_access(driver_path) == 0 ? driver_path : stand_in_path;
    return means_driver(name) && !is_one_of_both(asker) ? given.hook : name;
}

/* Only the name that was asked for is changed: a place of the search path would become the name of what is found. */
EXPORTED char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    const struct link_map *asker = (const struct link_map *)*cookie;
    return (char *)(asker && flag == LA_SER_ORIG ? choose(name, asker) : name);
}

static bool is_in_our_folder(const char *path)
{
    const char *base = text_base(path);
    const char *own = text_base(given.hook);
    if (!base || base - path != own - given.hook)
        return false;
    for (const char *c = given.hook; c < own; c++)
        if (*c != *path++)
            return false;
    return true;
}

static char *add_number(char *at, const char *end, unsigned long number)
{
    char digits[24], *first = digits + sizeof digits - 1;
    *first = '\0';
    do
        *--first = (char)('0' + number % 10);
    while (number /= 10);
    return text_add(at, end, first);
}

/* A driver whose launches are not seen: a line "PID PATH" for the launcher. */
static void report_unseen(const char *path)
{
    char line[LINE_SIZE];
    const char *end = line + sizeof line;
    char *at = text_add(add_number(line, end, (unsigned long)system_process()), end, " ");
    at = text_add(text_add(at, end, path), end, "\n");
    const long file = system_open(given.unseen, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC);
    if (file < 0)
        return;
    if (at < end)
        system_write((int)file, line, (unsigned long)(at - line));
    system_close((int)file);
}

/* Only the hook opens the driver by this path, and a library that was opened by another is one that it does not
 * call. */
static bool is_unseen(const char *path)
{
    const char *base = text_base(path);
    if (!base || is_in_our_folder(path) || text_equal(path, driver_path))
        return false;
    return text_is_driver_name(base) || is_driver_file(path);
}

EXPORTED unsigned la_objopen(struct link_map *map, Lmid_t list, uintptr_t *cookie)
{
    (void)list, (void)cookie;
    if (starting && static_tls_is_short_with(map))
        restart_preloaded(arguments, environment, given.hook);
    if (given.unseen && is_unseen(map->l_name))
        report_unseen(map->l_name);
    return 0;
}
