/* SPDX-License-Identifier: BSD-3-Clause */
/* A port whose other end is the test: what it sends is kept, and what it receives is put there by hand. */
#ifndef TRIB_TESTS_IO_FAKE_PORT_H
#define TRIB_TESTS_IO_FAKE_PORT_H

#include "io/port/port_impl.h"
#include "machine/shared.h"

#include <rte_mbuf.h>
#include <string.h>

#define FAKE_FRAMES 4096u

struct fake_port {
    struct io_port port;
    bool up, crowded, expired;
    int fd;
    struct port_page *page; /* NULL: none */
    unsigned room;          /* frames that it still takes */
    struct rte_mbuf *sent[FAKE_FRAMES], *arrives[2][FAKE_FRAMES];
    unsigned n_sent, bursts, at[2], n[2];
    unsigned closed, looks; /* calls of close, and of up */
};

static inline struct fake_port *fake_of(const struct io_port *p)
{
    return (struct fake_port *)(uintptr_t)p;
}

static bool fake_up(struct io_port *p)
{
    fake_of(p)->looks++;
    return fake_of(p)->up;
}

static int fake_fd(const struct io_port *p)
{
    return fake_of(p)->fd;
}

static uint16_t fake_rx(struct io_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n)
{
    struct fake_port *f = fake_of(p);
    uint16_t k = 0;

    while (k < n && f->at[q] < f->n[q])
        m[k++] = f->arrives[q][f->at[q]++];
    return k;
}

static uint16_t fake_tx(struct io_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n)
{
    struct fake_port *f = fake_of(p);
    uint16_t k = 0;

    (void)q;
    f->bursts++;
    for (; k < n && f->room && f->n_sent < FAKE_FRAMES; k++, f->room--)
        f->sent[f->n_sent++] = m[k];
    return k;
}

static uint16_t fake_pending(const struct io_port *p, uint16_t q)
{
    return (uint16_t)(fake_of(p)->n[q] - fake_of(p)->at[q]);
}

static uint16_t fake_arrived(const struct io_port *p, uint16_t q)
{
    return (uint16_t)fake_of(p)->n[q];
}

static bool fake_crowded(const struct io_port *p, uint16_t q)
{
    (void)q;
    return fake_of(p)->crowded;
}

static struct port_page *fake_page(const struct io_port *p)
{
    return fake_of(p)->page;
}

static bool fake_expired(const struct io_port *p)
{
    return fake_of(p)->expired;
}

static void fake_close(struct io_port *p)
{
    fake_of(p)->closed++;
}

static const struct io_port_ops fake_ops = {.up = fake_up,
                                            .fd = fake_fd,
                                            .rx = fake_rx,
                                            .tx = fake_tx,
                                            .pending = fake_pending,
                                            .arrived = fake_arrived,
                                            .crowded = fake_crowded,
                                            .page = fake_page,
                                            .expired = fake_expired,
                                            .close = fake_close};

/* Up, with room for all. */
static inline struct io_port *fake_begin(struct fake_port *f)
{
    memset(f, 0, sizeof(*f));
    f->port.ops = &fake_ops;
    f->up = true;
    f->fd = -1;
    f->room = FAKE_FRAMES;
    return &f->port;
}

static inline void fake_arrive(struct fake_port *f, unsigned q, struct rte_mbuf *m)
{
    f->arrives[q][f->n[q]++] = m;
}

/* Frees what was sent, and has not been received; how many were sent. */
static inline unsigned fake_clear(struct fake_port *f)
{
    unsigned n = f->n_sent;

    rte_pktmbuf_free_bulk(f->sent, n);
    for (unsigned q = 0; q < 2; q++) {
        rte_pktmbuf_free_bulk(f->arrives[q] + f->at[q], f->n[q] - f->at[q]);
        f->at[q] = f->n[q] = 0;
    }
    f->n_sent = f->bursts = 0;
    return n;
}

#endif
