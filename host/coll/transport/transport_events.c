/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/coll/comm.h"

#include <stdarg.h>
#include <stdio.h>

void transport_failed(struct comm *c, unsigned parts, const char *fmt, ...)
{
    char why[COMM_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    c->tell->failed(c, parts, why);
}
