/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process of a host sends next, as its NIC and its HCAs decide (switch/nic_tx.c,
 * roce/rnic.c). Processes take turns, and so do the queue pairs of a process. A part that a process
 * offers waits until its link is free: the host's link, or the loop to other processes of the host.
 * Meanwhile it blocks the process's parts for the other of the two.
 */
#include "model/cost_model.h"

#include <errno.h>
#include <stdlib.h>

/* Parts that a process sends by one port: a turn of each lane that has one. */
struct model_source {
    uint32_t head, tail;
    uint32_t offered; /* the part that it offers to the NIC */
};

struct model_nic {
    uint32_t first, n; /* its processes' sources */
    uint32_t up, loop; /* links; NOBODY: none */
    uint32_t turn[2];  /* of the link, of the loop: the source whose turn it is */
    bool looped;       /* messages pass the loop */
};

static uint32_t first_link(const struct model *m, uint32_t k)
{
    return m->part[k].path->link[0];
}

/* Finds the links on which a rank's host sends. */
static void find_links(struct model *m, uint16_t node)
{
    const struct fab_node *nd = &m->fab->nodes[node];

    for (unsigned i = 0; i < nd->n_ports; i++) {
        uint32_t l = nd->ports[i].link, loop = 2u * m->fab->n_links + nd->host_index;
        struct model_nic *nic = &m->nic[m->n_nics];

        *nic = (struct model_nic){.up = NOBODY, .loop = NOBODY};
        if (l != FAB_NONE) {
            nic->up = 2 * l + (m->fab->links[l].a != node);
            m->nic_of[nic->up] = m->n_nics;
        }
        if (!i) {
            nic->loop = loop;
            m->nic_of[loop] = m->n_nics;
        }
        m->n_nics++;
    }
}

/* Numbers the ranks of each host, and makes a source for each at each of its ports. */
static int make_sources(struct model *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->n_nics; i++) {
        m->nic[i].first = n;
        n += m->nic[i].n;
    }
    m->source = calloc(n + 1, sizeof(*m->source));
    if (!m->source)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        m->source[i] = (struct model_source){NOBODY, NOBODY, NOBODY};
    return 0;
}

int nic_init(struct model *m)
{
    uint32_t ports = 0;

    for (unsigned k = 0; k < m->in.nranks; k++)
        ports += m->fab->nodes[model_node(m, k)].n_ports;
    m->n_nics = 0;
    m->nic = calloc(ports + 1, sizeof(*m->nic));
    m->nic_of = malloc((m->n_dir + 1) * sizeof(*m->nic_of));
    m->slot_of_rank = calloc(m->in.nranks, sizeof(*m->slot_of_rank));
    if (!m->nic || !m->nic_of || !m->slot_of_rank)
        return -ENOMEM;
    for (uint32_t d = 0; d < m->n_dir; d++)
        m->nic_of[d] = NOBODY;
    for (unsigned k = 0; k < m->in.nranks; k++) {
        const struct fab_node *nd = &m->fab->nodes[model_node(m, k)];
        uint32_t nic = m->nic_of[2u * m->fab->n_links + nd->host_index];

        if (nic == NOBODY) {
            nic = m->n_nics;
            find_links(m, model_node(m, k));
        }
        m->slot_of_rank[k] = m->nic[nic].n;
        for (unsigned i = 0; i < nd->n_ports; i++)
            m->nic[nic + i].n++;
    }
    return make_sources(m);
}

void nic_free(struct model *m)
{
    free(m->nic);
    free(m->nic_of);
    free(m->slot_of_rank);
    free(m->source);
    m->nic = NULL;
    m->nic_of = m->slot_of_rank = NULL;
    m->source = NULL;
}

void nic_note_path(struct model *m, const struct model_path *p)
{
    if (p->n && p->link[0] >= 2u * m->fab->n_links)
        m->nic[m->nic_of[p->link[0]]].looped = true;
}

static unsigned sender_of(const struct model *m, const struct model_part *p)
{
    return p->kind == PART_CREDIT ? m->rank[p->rank].s.lane[p->lane].peer : p->rank;
}

void nic_enqueue(struct model *m, uint32_t k)
{
    const struct model_nic *nic = &m->nic[m->nic_of[first_link(m, k)]];
    struct model_source *s = &m->source[nic->first + m->slot_of_rank[sender_of(m, &m->part[k])]];

    if (s->head == NOBODY)
        s->head = k;
    else
        m->part[s->tail].next = k;
    s->tail = k;
}

/* Whether the source may have a part for the link. */
static bool has_work(const struct model *m, const struct model_source *s, uint32_t d)
{
    return s->offered == NOBODY ? s->head != NOBODY : first_link(m, s->offered) == d;
}

bool nic_is_empty(const struct model *m, uint32_t d)
{
    const struct model_nic *nic = &m->nic[m->nic_of[d]];

    for (uint32_t i = 0; i < nic->n; i++)
        if (has_work(m, &m->source[nic->first + i], d))
            return false;
    return true;
}

/* Makes a process offer its next part. Its lane may send another one then. */
static void offer(struct model *m, struct model_source *s, uint32_t d, int64_t now)
{
    uint32_t k = s->head;
    struct model_part x = m->part[k];

    s->offered = k;
    s->head = x.next;
    if (x.kind == PART_EXCHANGE)
        exchange_part_left(m, x.rank, now);
    else if (x.kind != PART_CREDIT)
        run_part_left(m, x.rank, x.lane, now);
    if (x.path->link[0] != d)
        queue_kick(m, x.path->link[0], now);
}

/* The process's next part may be for the other of link and loop: starts that one. */
static void kick_other(struct model *m, const struct model_nic *nic, uint32_t d, int64_t now)
{
    uint32_t other = d == nic->loop ? nic->up : nic->loop;

    if (other != NOBODY)
        queue_kick(m, other, now);
}

uint32_t nic_take(struct model *m, uint32_t d, int64_t now)
{
    struct model_nic *nic = &m->nic[m->nic_of[d]];
    uint32_t *turn = &nic->turn[d == nic->loop];

    for (uint32_t i = 0; i < nic->n; i++) {
        uint32_t at = (*turn + i) % nic->n, k;
        struct model_source *s = &m->source[nic->first + at];

        if (s->offered == NOBODY && s->head != NOBODY)
            offer(m, s, d, now);
        k = s->offered;
        if (k == NOBODY || first_link(m, k) != d)
            continue;
        s->offered = NOBODY;
        *turn = (at + 1) % nic->n;
        if (nic->looped && s->head != NOBODY)
            kick_other(m, nic, d, now);
        return k;
    }
    return NOBODY;
}
