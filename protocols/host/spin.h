/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits timers that their owner always sets for now: in virtual time, time would stand still. */
#ifndef TRIB_PROTOCOLS_HOST_SPIN_H
#define TRIB_PROTOCOLS_HOST_SPIN_H

#include "base/units.h"

#include <stdbool.h>

#define PROTO_SPINS 100000u /* calls of timer() in a microsecond of fabric time */

struct proto_spin {
    int64_t since;
    uint32_t n;
};

/* Counts a call of timer(). True: there were too many. */
static inline bool proto_spins(struct proto_spin *s, int64_t now_ps)
{
    if (now_ps - s->since >= PS_PER_US)
        *s = (struct proto_spin){.since = now_ps};
    return s->n++ >= PROTO_SPINS;
}

#endif
