/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links that are cut because the process at one end has died. Each process states in its own page which
 * of its links it sees cut, and since when; of two statements about a link the later one counts.
 * Processes reroute around cut links even if they have no end of them.
 */
#include "io/loop_impl.h"
#include "machine/port_state.h"

#include <stdlib.h>
#include <string.h>

/* Writes the port's state for the host at an end. An end without a process leaves it to the other end. */
void cuts_show_port(const struct loop *l, unsigned link)
{
    const struct fab_link *k = &l->fab->links[link];
    bool up = !atomic_load(&l->page->link_down[link]) && !(atomic_load(&l->page->cut[link]) & 1);

    for (unsigned end = 0; end < 2; end++) {
        uint16_t node = end ? k->b : k->a;
        const struct fab_node *n = &l->fab->nodes[node];
        bool mine = !l->cfg.mine || l->cfg.mine[node];

        if (n->kind != FAB_HOST || n->outside || (up && !mine))
            continue;
        (void)(up ? port_state_renew : port_state_write)(l->cfg.rd, n->name,
                                                         end ? k->b_port : k->a_port, up);
    }
}

void cuts_state(struct loop *l, unsigned link, bool cut)
{
    atomic_store(&l->page->cut[link], (uint64_t)clock_mono_ns() << 1 | cut);
    atomic_fetch_add(&l->page->cuts, 1);
    cuts_show_port(l, link);
}

static uint32_t link_cuts_count(const struct shared *sh)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < sh->n_sw; i++)
        sum += atomic_load(&sh->sw[i].page->cuts);
    return sum;
}

static bool is_cut(const struct shared *sh, unsigned link)
{
    uint64_t last = 0;

    for (unsigned i = 0; i < sh->n_sw; i++) {
        uint64_t s = atomic_load_explicit(&sh->sw[i].page->cut[link], memory_order_relaxed);

        last = s >> 1 > last >> 1 ? s : last;
    }
    return last & 1;
}

void cuts_take(struct loop *l, int64_t now_ps)
{
    bool *cut, changed = false;
    uint32_t cuts = link_cuts_count(l->sh);

    if (cuts == l->cuts)
        return;
    shared_refresh(l->sh, l->cfg.rd->path); /* a new process has a page that is not mapped yet */
    cuts = link_cuts_count(l->sh);
    cut = calloc(l->fab->n_links + 1u, sizeof(*cut));
    if (!cut)
        return; /* the next check tries again */
    for (unsigned i = 0; i < l->fab->n_links; i++) {
        cut[i] = is_cut(l->sh, i);
        changed |= cut[i] != l->cut[i];
    }
    if (!changed || !net_cut_links(l->net, cut, now_ps)) {
        memcpy(l->cut, cut, l->fab->n_links * sizeof(*cut));
        l->cuts = cuts;
    }
    free(cut);
}
