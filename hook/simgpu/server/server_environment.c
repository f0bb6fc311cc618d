#include "server_environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "given.h"

extern char **environ;

static const char DRIVER_NAME[] = "libcuda.so.1", AUDIT_NAME[] = "libtui-probe-audit.so";

typedef bool is_unwanted(const char *entry);

static bool has_name(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, name) == 0;
}

static bool is_driver(const char *path)
{
    return has_name(path, DRIVER_NAME);
}

static bool is_audit(const char *path)
{
    return has_name(path, AUDIT_NAME);
}

static bool holds_driver(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, DRIVER_NAME);
    return access(path, F_OK) == 0;
}

/* "NAME=a:b:c" without the entries that are unwanted. The separators are those of `separators`; the first joins
 * again. */
static char *without(const char *variable, const char *separators, is_unwanted *unwanted)
{
    size_t name_length = strcspn(variable, "=") + 1;
    char *wanted = calloc(1, strlen(variable) + 1), *entries = strdup(variable + name_length), *place = NULL;
    if (wanted && entries) {
        memcpy(wanted, variable, name_length);
        char *end = wanted + name_length;
        for (char *entry = strtok_r(entries, separators, &place); entry; entry = strtok_r(NULL, separators, &place)) {
            if (unwanted(entry))
                continue;
            if (end[-1] != '=')
                *end++ = separators[0];
            end = stpcpy(end, entry);
        }
    }
    free(entries);
    return wanted;
}

static bool is(const char *variable, const char *name)
{
    size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

/* Of the program's settings for Python, those that tell where modules are. Others (tracing imports, turning warnings
 * into errors, staying interactive) are not meant for the server, nor is a home where its Python is known. */
static bool is_unwanted_setting(const char *variable)
{
    static const char *const wanted[] = {"PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX",
                                         "PYTHONDONTWRITEBYTECODE"};
    if (strncmp(variable, "PYTHON", strlen("PYTHON")) != 0)
        return false;
    if (is(variable, "PYTHONHOME") && given("TUI_PROBE_SIM_PYTHON"))
        return true;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (is(variable, wanted[i]))
            return false;
    }
    return true;
}

static char *python_path(void)
{
    const char *ours = given("TUI_PROBE_SIM_PYTHONPATH"), *theirs = getenv("PYTHONPATH");
    bool has_ours = ours && *ours, has_theirs = theirs && *theirs;
    char *variable;
    int length = asprintf(&variable, "PYTHONPATH=%s%s%s", has_ours ? ours : "", has_ours && has_theirs ? ":" : "",
                          has_theirs ? theirs : "");
    return length < 0 ? NULL : variable;
}

char **server_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **copy = calloc(count + 2, sizeof *copy);
    if (!copy)
        return NULL;
    size_t n_wanted = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_unwanted_setting(environ[i]))
            continue; /* PYTHONPATH comes at the end */
        if (is(environ[i], "TUI_PROBE_LAUNCHER"))
            continue; /* the server ends after the program, and is not a process of the run */
        if (is(environ[i], "LD_PRELOAD"))
            copy[n_wanted++] = without(environ[i], ": ", is_driver);
        else if (is(environ[i], "LD_AUDIT"))
            copy[n_wanted++] = without(environ[i], ":", is_audit);
        else if (is(environ[i], "LD_LIBRARY_PATH"))
            copy[n_wanted++] = without(environ[i], ":", holds_driver);
        else
            copy[n_wanted++] = strdup(environ[i]);
    }
    copy[n_wanted++] = python_path();
    for (size_t i = 0; i < n_wanted; i++) {
        if (copy[i])
            continue;
        for (size_t j = 0; j < n_wanted; j++)
            free(copy[j]);
        free(copy);
        return NULL;
    }
    return copy;
}

void server_environment_free(char **environment)
{
    for (char **variable = environment; *variable; variable++)
        free(*variable);
    free(environment);
}
