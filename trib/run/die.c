/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/run/die.h"

#include <stdarg.h>
#include <stdlib.h>

static void message_print(const char *fmt, va_list ap)
{
    fflush(stdout);
    fputs("trib: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    message_print(fmt, ap);
    va_end(ap);
    exit(1);
}

void die_with(int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    message_print(fmt, ap);
    va_end(ap);
    exit(code);
}
