/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/sharp/sharp_priv.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic int shown = SHARP_LOG_WARN;

void sharp_log_level(int level)
{
    shown = level;
}

int sharp_say(enum sharp_log level, int status, const char *format, ...)
{
    static const char *const name[] = {"fatal", "error", "warning", "info", "debug"};
    const char *host = getenv("TRIB_HOST");
    char text[2 * SHARP_TEXT];
    va_list ap;

    if ((int)level > shown)
        return status;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    fprintf(stderr, "sharp[%s:%d] %s: %s\n", host ? host : "?", (int)getpid(), name[level], text);
    return status;
}
