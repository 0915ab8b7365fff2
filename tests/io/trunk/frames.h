/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the machines of simulated.h: each has a switch process that sends numbered ones on its links to other machines, and takes
 * what comes. A program has this once. */
#ifndef TRIB_TESTS_IO_TRUNK_FRAMES_H
#define TRIB_TESTS_IO_TRUNK_FRAMES_H

#include "simulated.h"

#include "tests/support/eal.h"

#define RING  512u
#define BYTES 60u
#define LINKS (2 * MACHINES)

/* A link's end at a switch process; its other end is the trunk of that machine. */
struct sim_port {
    struct io_port port;
    unsigned machine, link;
    struct rte_mbuf *ring[RING]; /* sent, and not taken by the trunk yet */
    unsigned head, n;
};

static struct {
    struct sim_port *open[MACHINES][LINKS];
    uint32_t sent[MACHINES][LINKS]; /* the last number, */
    uint32_t came[MACHINES][LINKS]; /* and the last that came, by the receiving machine */
    unsigned long long in[MACHINES][LINKS], all; /* how many came */
    unsigned full;
    bool slow; /* switch processes take nothing now and then */
} frames;

static struct sim_port *sim_port_of(const struct io_port *p)
{
    return (struct sim_port *)(uintptr_t)p;
}

static bool sim_port_up(struct io_port *p)
{
    return !sim.machine[sim_port_of(p)->machine].sw_dead;
}

static int sim_port_fd(const struct io_port *p)
{
    (void)p;
    return -1;
}

static uint16_t sim_port_rx(struct io_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct sim_port *p = sim_port_of(port);
    uint16_t k = 0;

    (void)queue;
    for (; k < n && p->n; k++, p->n--, p->head++)
        m[k] = p->ring[p->head % RING];
    return k;
}

/* What the trunk hands over: later than all before, and as it was sent. */
static void frame_came(unsigned machine, unsigned link, struct rte_mbuf *m)
{
    const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);
    uint32_t number;

    memcpy(&number, at, sizeof(number));
    HOLDS(number > frames.came[machine][link], "frame %u of link %u comes to machine %u after %u",
          number, link, machine, frames.came[machine][link]);
    HOLDS(m->pkt_len == BYTES && at[BYTES - 1] == (uint8_t)number, "frame %u has changed", number);
    frames.came[machine][link] = number;
    frames.in[machine][link]++;
    frames.all++;
    rte_pktmbuf_free(m);
}

static uint16_t sim_port_tx(struct io_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct sim_port *p = sim_port_of(port);

    (void)queue;
    if (frames.slow && !draw(4))
        n = (uint16_t)draw(n + 1u);
    for (uint16_t k = 0; k < n; k++)
        frame_came(p->machine, p->link, m[k]);
    return n;
}

static uint16_t sim_port_pending(const struct io_port *p, uint16_t queue)
{
    (void)queue;
    return (uint16_t)sim_port_of(p)->n;
}

static struct port_page *sim_port_page(const struct io_port *p)
{
    (void)p;
    return NULL;
}

static void sim_port_clear(struct sim_port *p)
{
    for (; p->n; p->n--, p->head++)
        rte_pktmbuf_free(p->ring[p->head % RING]);
}

static void sim_port_close(struct io_port *port)
{
    struct sim_port *p = sim_port_of(port);

    sim_port_clear(p);
    frames.open[p->machine][p->link] = NULL;
    free(p);
}

static const struct io_port_ops sim_port_ops = {.up = sim_port_up,
                                                .fd = sim_port_fd,
                                                .rx = sim_port_rx,
                                                .tx = sim_port_tx,
                                                .pending = sim_port_pending,
                                                .arrived = sim_port_pending,
                                                .page = sim_port_page,
                                                .close = sim_port_close};

int io_port_memif(struct io_port **to, const struct memif_cfg *cfg)
{
    const char *name = strrchr(cfg->socket, '/') + 1;
    struct sim_port *p = page_of(sizeof(*p));

    p->port.ops = &sim_port_ops;
    p->machine = sim.at;
    while (strncmp(sim.fab->links[p->link].name, name, strlen(sim.fab->links[p->link].name)) != 0)
        p->link++;
    assert_true(p->link < LINKS && !frames.open[p->machine][p->link]);
    frames.open[p->machine][p->link] = p;
    frames.came[p->machine][p->link] = 0; /* what was held back on its way may come now */
    *to = &p->port;
    return 0;
}

/* The switch process of a machine sends n frames on each of its links to others, as far as there is room. */
static void frames_send(unsigned i, unsigned n)
{
    for (unsigned link = 0; link < LINKS; link++) {
        struct sim_port *p = frames.open[i][link];

        for (unsigned k = 0; p && k < n && p->n < RING; k++) {
            struct rte_mbuf *m = frame_alloc(sim.pool);
            uint32_t number = frames.sent[i][link] + 1;
            uint8_t *at = m ? (uint8_t *)rte_pktmbuf_append(m, BYTES) : NULL;

            HOLDS(at, "no frame is left");
            if (!at)
                return;
            memset(at, (int)number, BYTES);
            memcpy(at, &number, sizeof(number));
            frames.sent[i][link] = number;
            p->ring[(p->head + p->n++) % RING] = m;
        }
    }
}

/* The switch process ends with the frames that it had not handed over; the next one knows of
 * none. */
static void switch_dies(unsigned i)
{
    sim.machine[i].sw_dead = true;
    for (unsigned link = 0; link < LINKS; link++)
        if (frames.open[i][link]) {
            sim_port_clear(frames.open[i][link]);
            frames.came[i][link] = 0;
        }
}

static void switch_begins(unsigned i)
{
    sim.machine[i].sw_dead = false;
    if (sim.machine[i].sh)
        atomic_store(&sim.machine[i].sh->sw[0].gone, false); /* as shared_refresh() finds it */
}

static void frames_begin(bool slow)
{
    static struct rte_mempool *pool;
    unsigned long long all = frames.all;

    if (!pool) {
        test_eal_init();
        pool = test_pool(16384);
    }
    memset(&frames, 0, sizeof(frames));
    frames.all = all;
    frames.slow = slow;
    frames.full = rte_mempool_avail_count(pool);
    sim.pool = pool;
}

/* All machines have died. */
static void frames_end(void)
{
    HOLDS(rte_mempool_avail_count(sim.pool) == frames.full, "%u frames were not freed",
          frames.full - rte_mempool_avail_count(sim.pool));
}

#endif
