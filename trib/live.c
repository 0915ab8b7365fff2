/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands whose programs find fabrics themselves, even fabrics that start later. CONF is the first
 * word. */
#include "trib/commands.h"
#include "trib/fabric_of.h"
#include "trib/find.h"
#include "trib/run/run.h"

#include <stddef.h>

static int live_become(const char *name, int n, char **words)
{
    struct words command = {0};
    const char *dir = NULL;

    words_append(&command, find_program(name));
    if (n && *words[0] != '-') {
        dir = fabric_of_conf(words[0]).dir;
        n--;
        words++;
    }
    words_append_n(&command, (unsigned)n, words);
    if (dir)
        words_append(&command, dir);
    run_become(&command);
}

int command_metrics(int n, char **words)
{
    return live_become("trib-metrics", n, words);
}

int command_top(int n, char **words)
{
    return live_become("trib-top", n, words);
}
