/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"

#include "base/events.h"

#include <stdio.h>
#include <stdlib.h>

void assert_failed(const char *condition, const char *what, const char *file, int line,
                   const char *function)
{
    fflush(stdout);
    fprintf(stderr, "%s:%d: %s: assertion failed: %s (%s)\n", file, line, function, what,
            condition);
    events_dump(stderr);
    fflush(stderr);
    abort();
}
