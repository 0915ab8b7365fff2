/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/run/inherited_clock.h"

#include "trib/run/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOCK  "TRIB_CLOCK"
#define BEFORE "TRIB_CLOCK_BEFORE" /* from this program to itself */

static const char *inherited = "";

void inherited_clock_begin(char **argv)
{
    const char *before = text_env(BEFORE), *now = text_env(CLOCK);

    inherited = before ? text_of("%s", before) : now ? text_of("%s", now) : "";
    unsetenv(BEFORE);
    if (before || !now)
        return;
    setenv(CLOCK, "wall", 1);
    if (!strcmp(now, "wall"))
        return;
    /* the preloaded library has read it already */
    setenv(BEFORE, inherited, 1);
    execv("/proc/self/exe", argv);
    unsetenv(BEFORE);
}

const char *inherited_clock_get(void)
{
    return inherited;
}

void inherited_clock_give_back(void)
{
    if (*inherited)
        setenv(CLOCK, inherited, 1);
}
