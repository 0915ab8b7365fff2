/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/in_flight.h"

#include "base/units.h"

/* Up to the top of a tree and back takes at most one round trip between hosts with
 * store-and-forward switches. The second is for messages that go up as a whole, and for late
 * members, which keep the others' slots occupied. */
#define ROUND_TRIPS 2
#define LEAST_PS    (10 * PS_PER_US)
#define LEAST_SLOTS 64

uint32_t agg_window(const struct fabric *fab, uint32_t asked)
{
    int64_t ps = RTE_MAX(ROUND_TRIPS * fab->transport.stored_round_trip_ps, LEAST_PS);
    uint64_t rate = 0;
    double slots;

    if (asked)
        return RTE_MIN(asked, (uint32_t)AGG_MAX_WINDOW);
    for (unsigned h = 0; h < fab->n_hosts; h++)
        for (unsigned p = 0; p < fab->nodes[fab->hosts[h]].n_ports; p++)
            rate = RTE_MAX(rate, fab->nodes[fab->hosts[h]].ports[p].rate_bps);
    slots = (double)rate / 8 * (double)ps * 1e-12 / fab->mtu;
    return (uint32_t)RTE_MIN(RTE_MAX(slots, (double)LEAST_SLOTS), (double)AGG_MAX_WINDOW);
}
