/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures what links carry during a run. Ranks are done before the last ACKs have crossed the
 * fabric. So counters are read until they have not changed for half a round trip, which is longer
 * than a frame takes from one link to the next. There are at most READINGS readings, because other
 * jobs of the fabric may keep the counters changing.
 */
#include "base/units.h"
#include "host/launch/ranks_priv.h"
#include "machine/link_reader.h"

#include <errno.h>
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READINGS 4
/* Time between two readings. The least is the lateness that a process may have at dilation 1. */
#define REST_MIN_NS 5000000LL
#define REST_MAX_NS 999999999LL

/* Sleeps until the next reading. False: the row has no time left for it. */
static bool links_rest(const struct sweep *s)
{
    int64_t half_ns = s->fab->transport.round_trip_ps / (2 * PS_PER_NS);
    int64_t ns = RTE_MAX(half_ns * clock_dilation(s->rd->sh), REST_MIN_NS);

    ns = RTE_MIN(ns, REST_MAX_NS);
    if (ranks_left_s(s->until) < (double)ns * 1e-9)
        return false;
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
    return true;
}

/* Reads the counters until they rest; the last reading is in `sent`. 0; or -errno with m->why. */
static int read_at_rest(const struct sweep *s, struct ranks_links *m, uint64_t *sent)
{
    size_t bytes = 2 * s->fab->n_links * sizeof(*sent);
    uint64_t *last = malloc(bytes + 1);
    int rc = last ? link_reader_read(s->rd, s->fab, sent, m->why, sizeof(m->why)) : -ENOMEM;

    for (unsigned i = 1; !rc && i < READINGS && links_rest(s); i++) {
        memcpy(last, sent, bytes);
        rc = link_reader_read(s->rd, s->fab, sent, m->why, sizeof(m->why));
        if (!rc && !memcmp(last, sent, bytes))
            break;
    }
    if (rc == -ENOMEM)
        snprintf(m->why, sizeof(m->why), "no memory for counters");
    free(last);
    return rc;
}

void ranks_links_begin(struct sweep *s, struct ranks_links *m)
{
    size_t n = 2u * s->fab->n_links;

    *m = (struct ranks_links){.before = calloc(n + 1, sizeof(*m->before)),
                              .after = calloc(n + 1, sizeof(*m->after))};
    if (!m->before || !m->after)
        snprintf(m->why, sizeof(m->why), "no memory for counters");
    else
        read_at_rest(s, m, m->before);
}

void ranks_links_end(struct sweep *s, struct ranks_links *m, struct link_use *u)
{
    if (u && !*m->why && !read_at_rest(s, m, m->after)) {
        *u = link_use_busiest(s->fab, m->before, m->after);
    } else if (u) {
        *u = (struct link_use){0};
        memcpy(u->why, m->why, sizeof(u->why));
    }
    free(m->before);
    free(m->after);
}
