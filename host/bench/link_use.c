/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/link_use.h"

static double busy_s(uint64_t bytes, uint64_t rate_bps)
{
    return rate_bps ? (double)bytes * 8 / (double)rate_bps : 0;
}

struct link_use link_use_busiest(const struct fabric *f, const uint64_t *before,
                                 const uint64_t *after)
{
    struct link_use u = {.known = true};
    double most = -1;

    for (uint32_t d = 0; d < 2u * f->n_links; d++) {
        uint64_t bytes = after[d] - before[d], rate = f->links[d / 2].rate_bps;

        if (busy_s(bytes, rate) > most) {
            most = busy_s(bytes, rate);
            u.bytes = bytes;
            u.rate_bps = rate;
        }
    }
    return u;
}

double link_use_bytes(const struct link_use *u, unsigned n)
{
    return n ? (double)u->bytes / n : 0;
}

double link_use_share(const struct link_use *u, unsigned n, double time_us)
{
    return n && time_us > 0 ? busy_s(u->bytes, u->rate_bps) / (n * time_us * 1e-6) : 0;
}
