/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/nccl/nccl_priv.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#define TEXT 640

static _Atomic(nccl_log_fn) by;

void nccl_log_by(nccl_log_fn log)
{
    by = log;
}

int nccl_say(int level, int result, const char *file, int line, const char *format, ...)
{
    nccl_log_fn log = by;
    char text[TEXT];
    va_list ap;

    if (!log)
        return result;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    log(level, NCCL_LOG_NET, file, line, "NET/Tributary: %s", text);
    return result;
}
