/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages for a program's user on standard error: what the device refused and what it offers. Each
 * message comes once in a process, because programs repeat their requests; TRIB_LOG=none (or
 * hca:error) silences them.
 */
#include "host/hca/io/process_priv.h"

#include "base/log.h"

#include <stdio.h>

#define KINDS 64u

void process_say(void *ctx, const char *what, const char *text)
{
    static _Atomic(const char *) said[KINDS];

    (void)ctx;
    if (!log_on("hca", LOG_WARN))
        return;
    for (unsigned i = 0; i < KINDS; i++) {
        const char *free_place = NULL;

        if (atomic_compare_exchange_strong(&said[i], &free_place, what)) {
            fprintf(stderr, "tributary: %s\n", text);
            return;
        }
        if (free_place == what)
            return;
    }
}
