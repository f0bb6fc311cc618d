/* Prints the layout of the control page, then the shares of each line "LEFT_BYTES LEFT_FILES HELD_BYTES HELD_FILES FIRST". */
#include <stddef.h>
#include <stdio.h>

#include "budget.h"
#include "control.h"

typedef unsigned long long ull;

#define FIELD(name) printf(#name " %zu\n", offsetof(struct control, name))
#define BUDGET(name) (FIELD(name.limit), FIELD(name.used), FIELD(name.refused))

int main(void)
{
    ull left[2], held[2];
    int first;
    FIELD(magic);
    FIELD(version);
    FIELD(launcher);
    FIELD(on);
    FIELD(turned_on);
    FIELD(shares);
    FIELD(only_probe);
    FIELD(ending);
    BUDGET(trace_bytes);
    BUDGET(result_files);
    BUDGET(log_bytes);
    FIELD(over_share);
    FIELD(launcher_bytes);
    FIELD(write_rate);
    FIELD(written_until);
    FIELD(over_rate);
    FIELD(processes);
    printf("bytes %d\n", CONTROL_BYTES);
    while (scanf("%llu %llu %llu %llu %d", &left[0], &left[1], &held[0], &held[1], &first) == 5) {
        struct budget_amount share =
            budget_share((struct budget_amount){left[0], left[1]}, (struct budget_amount){held[0], held[1]}, first);
        printf("%llu %llu\n", (ull)share.bytes, (ull)share.files);
    }
    return 0;
}
