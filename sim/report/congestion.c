/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/report/congestion.h"

#include "base/table.h"
#include "switch/net/net_stats.h"

#include <jansson.h>

void congestion_read(struct congestion *c, struct world *w, const struct fabric *f)
{
    struct net_port_stats s;

    net_total_stats(world_net(w), f, &s);
    *c = (struct congestion){.marks = s.ecn_marks,
                             .pauses = s.pauses_sent,
                             .paused_ps = s.paused_ps,
                             .overflows = s.overflows,
                             .watchdog = s.watchdog_trips,
                             .discarded = s.discarded};
    for (unsigned r = 0; r < world_ranks(w); r++)
        for (unsigned p = 0; p < world_ports(w, r); p++) {
            const struct roce_counters *k = rnic_counters(hca_rnic(world_hca(w, r, p)));

            c->cnps += k->cnps_received;
            c->cuts += k->rate_cuts;
            c->retransmits += k->retransmits;
            c->timeouts += k->timeouts;
        }
}

void congestion_print(const struct congestion *c, bool wide, FILE *out)
{
    if (!c->marks && !c->pauses && !c->overflows && !c->retransmits)
        return;
    table_line(
        out, wide,
        "# Congestion: %llu frames marked, %llu notifications, %llu rate cuts; %llu pauses, "
        "%.1f us of waiting; %llu frames dropped in full queues, %llu packets sent again, %llu "
        "timeouts",
        (unsigned long long)c->marks, (unsigned long long)c->cnps, (unsigned long long)c->cuts,
        (unsigned long long)c->pauses, (double)c->paused_ps * 1e-6,
        (unsigned long long)c->overflows, (unsigned long long)c->retransmits,
        (unsigned long long)c->timeouts);
    if (c->watchdog)
        fprintf(out, "# PFC watchdog: queues found stuck %llu times, %llu frames dropped\n",
                (unsigned long long)c->watchdog, (unsigned long long)c->discarded);
}

json_t *congestion_json(const struct congestion *c)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "ecn_marks",
                     (json_int_t)c->marks, "cnps", (json_int_t)c->cnps, "rate_cuts",
                     (json_int_t)c->cuts, "pauses", (json_int_t)c->pauses, "paused_us",
                     (double)c->paused_ps * 1e-6, "dropped_full", (json_int_t)c->overflows,
                     "retransmits", (json_int_t)c->retransmits, "timeouts", (json_int_t)c->timeouts,
                     "watchdog_trips", (json_int_t)c->watchdog, "watchdog_dropped",
                     (json_int_t)c->discarded);
}
