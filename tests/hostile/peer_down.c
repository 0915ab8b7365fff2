/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells every aggregation node, again and again, that processes of other hosts have ended.
 *
 *     peer_down SECONDS VICTIM...
 *
 * Each round sends a PEER_DOWN for the first slots of every VICTIM to every switch that reduces,
 * with the victim's addresses and then with the own ones. Prints the number of messages sent.
 */
#include "tests/hostile/raw.h"

#include <stdlib.h>
#include <unistd.h>

#define SLOTS  4
#define NIC_QP 1 /* source QPN of a NIC's own messages */

static void tell(struct raw *r, uint32_t src_ip, uint32_t sqpn, unsigned slot)
{
    struct agg_ctl c = {.qpn = rte_cpu_to_be_32(raw_qpn0(slot)), .node = RTE_BE16(0xffff)};

    for (unsigned i = 0; i < r->fab->n_switches; i++) {
        const struct fab_node *sw = &r->fab->nodes[r->fab->switches[i]];

        if (sw->reduce.on)
            raw_offer(r, raw_agg(r, src_ip, sw->ip, sqpn, AGG_QPN, AGG_PEER_DOWN, &c));
    }
}

int main(int argc, char **argv)
{
    int64_t end;
    struct raw r;

    if (argc < 3)
        raw_die("usage: peer_down SECONDS VICTIM...");
    raw_open(&r, NULL, 0, -1);
    end = clock_mono_ns() + atoi(argv[1]) * 1000000000LL;
    do {
        for (int v = 2; v < argc; v++)
            for (unsigned slot = 0; slot < SLOTS; slot++) {
                tell(&r, raw_ip(&r, argv[v]), NIC_QP, slot);
                tell(&r, raw_ip(&r, argv[v]), 0, slot);
            }
        raw_drain(&r);
        usleep(20000);
    } while (clock_mono_ns() < end);
    raw_flush(&r, 1000);
    printf("sent %llu\n", (unsigned long long)r.sent);
    raw_close(&r);
    return 0;
}
