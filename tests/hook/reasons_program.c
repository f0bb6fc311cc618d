/* Makes reasons as the hook does. Lines of standard input: "fill CODE PARAMETER…", "read TEXT", "file ERRNO PATH", with tabs
 * between their parts. Each gives a line, the reason as logs have it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reasons.h"

static const struct reason *filled(const char *code, const char *const *parameters)
{
    size_t length = strlen(code);
    for (int i = 0; i < REASON_CODES; i++) {
        const char *written = reasons_plain[i].written, *end = written + strlen(written);
        if (strlen(written) > length && strcmp(end - length, code) == 0 && end[-(long)length - 1] == ' ')
            return *parameters ? reason_fill((enum reason_code)i, parameters) : &reasons_plain[i];
    }
    exit(2);
}

int main(void)
{
    char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        const char *parts[8] = {NULL};
        char *cursor = line;
        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < 7 && cursor; i++)
            parts[i] = strsep(&cursor, "\t");
        const struct reason *reason = strcmp(parts[0], "fill") == 0   ? filled(parts[1], parts + 2)
                                      : strcmp(parts[0], "read") == 0 ? reason_read(parts[1])
                                                                      : reason_of_file(parts[2], atoi(parts[1]));
        printf("%s\n", reason->written);
    }
    return 0;
}
