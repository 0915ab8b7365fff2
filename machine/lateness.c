/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records which loops ran late, when, and for how long.
 *
 * A timer for an answer measures the peer and the network only while all loops on the path run. In real
 * time they are processes that share a few CPUs, and one that is stopped or not scheduled looks like
 * loss. So each switch process logs in its page how late its own loop was, and how late the processes in
 * its slots served their bells; timers subtract that. A loop that is late right now cannot log it, but its
 * due time shows it; for a process that is the time of its bell's ring.
 *
 * A log has one number for each of the last LATENESS_SLICES slices of 17 ms, about a second; a loop that
 * is late for longer fills all of them. Readers bound every value.
 */
#include "base/assert.h"
#include "fabric/fabric.h"
#include "machine/shared.h"

#include <stddef.h>

#define SLICE_LOG2 24
#define SLICE_NS   (1LL << SLICE_LOG2)

static uint64_t slice_word(int64_t at, int64_t ns)
{
    return (uint64_t)(at & 0xffffffff) << 32 | (uint64_t)ns;
}

/* Lateness of the loop in that slice, at most SLICE_NS. */
static int64_t slice_ns(const struct lateness_log *g, int64_t at)
{
    T_ASSERT(at >= 0, "a slice of time before the machine was started");
    uint64_t w = atomic_load_explicit(&g->slice[at % LATENESS_SLICES], memory_order_relaxed);
    int64_t ns = (int64_t)(w & 0xffffffff);

    return w >> 32 != (uint64_t)(at & 0xffffffff) ? 0 : ns < SLICE_NS ? ns : SLICE_NS;
}

static int64_t lateness_overlap(int64_t at, int64_t from_ns, int64_t until_ns)
{
    int64_t a = at * SLICE_NS, b = a + SLICE_NS;

    a = a < from_ns ? from_ns : a;
    b = b > until_ns ? until_ns : b;
    return b > a ? b - a : 0;
}

void lateness_record(struct lateness_log *g, int64_t from_ns, int64_t until_ns)
{
    int64_t last = until_ns >> SLICE_LOG2, first = from_ns >> SLICE_LOG2;

    if (first < last - LATENESS_SLICES + 1)
        first = last - LATENESS_SLICES + 1;
    for (int64_t at = first < 0 ? 0 : first; at <= last; at++) {
        int64_t ns = slice_ns(g, at) + lateness_overlap(at, from_ns, until_ns);

        atomic_store_explicit(&g->slice[at % LATENESS_SLICES],
                              slice_word(at, ns < SLICE_NS ? ns : SLICE_NS), memory_order_relaxed);
    }
}

/* Lateness of the log's loop from from_ns to now_ns. rung: when its bell was rung, or 0. */
static int64_t lateness_within(const struct lateness_log *g, int64_t rung, int64_t from_ns,
                               int64_t now_ns)
{
    int64_t due = atomic_load_explicit(&g->due_ns, memory_order_relaxed), sum = 0;
    int64_t first = from_ns >> SLICE_LOG2, last = now_ns >> SLICE_LOG2;

    due = due && (!rung || due < rung) ? due : rung;
    if (due > 0 && now_ns - due > LATENESS_BOUND_NS && now_ns - due < LATENESS_GONE_NS)
        sum = now_ns - (due > from_ns ? due : from_ns);
    if (first < last - LATENESS_SLICES + 1)
        first = last - LATENESS_SLICES + 1;
    for (int64_t at = first < 0 ? 0 : first; at <= last; at++) {
        int64_t part = lateness_overlap(at, from_ns, now_ns), ns = slice_ns(g, at);

        sum += ns < part ? ns : part;
    }
    return sum < now_ns - from_ns ? sum : now_ns - from_ns;
}

/* Index of the bell of the process with queue pair qpn at ip; BELLS: no process of this fabric. */
static unsigned bell_of_qp(const struct fabric *f, uint32_t ip, uint32_t qpn)
{
    unsigned slot = qpn >> 16 ? (qpn >> 16) - 1 : 0;
    int d = fabric_dest_of_ip(f, ip);

    if (d < 0 || f->nodes[f->dests[d].node].kind != FAB_HOST || slot >= f->slots_per_host)
        return BELLS;
    return bell_of_slot(f, &f->nodes[f->dests[d].node], f->dests[d].port, slot);
}

int64_t lateness_on_path(const struct shared *sh, const struct fabric *f,
                         const struct lateness_own *own, uint32_t ip, uint32_t qpn,
                         int64_t window_ps)
{
    int64_t dilation = clock_dilation(sh), now = clock_mono_ns(), sum = 0;
    unsigned n = atomic_load_explicit(&sh->n_sw, memory_order_acquire),
             bell = bell_of_qp(f, ip, qpn);
    __int128 window = (__int128)window_ps * dilation / 1000;
    int64_t from = window < now ? now - (int64_t)window : 0;

    for (unsigned i = 0; i < n; i++) {
        if (atomic_load_explicit(&sh->sw[i].gone, memory_order_relaxed))
            continue;
        sum += lateness_within(&sh->sw[i].page->loop, 0, from, now);
        if (bell < BELLS)
            sum += lateness_within(&sh->sw[i].page->slot[bell], 0, from, now);
    }
    if (own)
        sum += lateness_within(own->log, own->rung_ns, from, now);
    if (sum > now - from)
        return window_ps;
    return (int64_t)((__int128)sum * 1000 / dilation);
}

int64_t lateness_of_host(const struct shared *sh, const struct fabric *f,
                         const struct fab_node *host, int64_t from_ps, int64_t *of_ps)
{
    int64_t dilation = clock_dilation(sh), now = clock_mono_ns(), worst = 0;
    __int128 since = (__int128)(clock_fabric_ps(sh) - from_ps) * dilation / 1000;
    int64_t most = (LATENESS_SLICES - 1) * SLICE_NS;
    int64_t window = since < 0 ? 0 : since < most ? (int64_t)since : most;
    unsigned n = atomic_load_explicit(&sh->n_sw, memory_order_acquire);

    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; !atomic_load_explicit(&sh->sw[i].gone, memory_order_relaxed) &&
                             k < host->n_ports * f->slots_per_host;
             k++) {
            unsigned bell = bell_of_slot(f, host, k / f->slots_per_host, k % f->slots_per_host);
            int64_t late = lateness_within(&sh->sw[i].page->slot[bell], 0, now - window, now);

            worst = late > worst ? late : worst;
        }
    *of_ps = (int64_t)((__int128)window * 1000 / dilation);
    return (int64_t)((__int128)worst * 1000 / dilation);
}

void lateness_forget(struct lateness_log *g)
{
    atomic_store_explicit(&g->due_ns, 0, memory_order_relaxed);
}

bool lateness_known(const struct fabric *f)
{
    for (unsigned i = 0; i < f->n_nodes; i++) {
        if (f->nodes[i].outside)
            return false;
        for (unsigned p = 0; p < f->nodes[i].n_ports; p++)
            if (f->nodes[i].ports[p].external[0])
                return false;
    }
    return true;
}
