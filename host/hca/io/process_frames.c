/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames between the HCA's engine and the rings to its NIC. With the lock held.
 */
#include "base/units.h"
#include "host/hca/io/process_priv.h"

#include <limits.h>

#define RETRY_MIN_NS 50000LL
#define RX_BURSTS    4
#define AHEAD_NS     300000LL /* from waking a process until it has handed over its next frame */
#define RETRY_MAX_NS 1000000LL

static unsigned process_frames_receive(struct process_hca *p, int64_t now_ps)
{
    struct rte_mbuf *m[PORT_BURST];
    unsigned total = 0;
    int64_t late;

    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++)
        for (unsigned b = 0; b < RX_BURSTS; b++) {
            uint16_t n = io_port_rx(p->port, (uint16_t)q, m, PORT_BURST), k;

            if (!n)
                break;
            k = p->ep.input(p->ep.ctx, m, n, now_ps);
            T_ASSERT_HOT(k <= n, "the endpoint took more frames than it was given");
            rte_pktmbuf_free_bulk(m + k, n - k);
            total += n;
            if (n < PORT_BURST)
                break;
        }
    /* Also after an empty receive: an earlier one then got the frames for which the bell rang. */
    late = bell_served(p->bell);
    process_record_lateness(p, late);
    return total;
}

static void drop_output(struct process_hca *p, int64_t now_ps)
{
    struct rte_mbuf *m[PORT_BURST];

    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++) {
        uint16_t n;

        rte_pktmbuf_free_bulk(p->stash[q], p->n_stash[q]);
        p->n_stash[q] = 0;
        while ((n = p->ep.output(p->ep.ctx, (enum endpoint_queue)q, m, PORT_BURST, now_ps)))
            rte_pktmbuf_free_bulk(m, n);
    }
}

/* Time in which the link sends the `waiting` data frames that the NIC has not taken yet. */
static int64_t waiting_ps(const struct process_hca *p, uint16_t waiting)
{
    uint64_t bytes = 0;

    for (uint16_t i = 1; i <= waiting; i++)
        bytes += p->sent_bytes[(uint16_t)(p->n_sent - i) % PORT_RING];
    return link_time_ps(bytes, p->rate_bps);
}

/*
 * Number of data frames that may still be handed to the NIC. As in virtual time, the HCA chooses
 * the queue pair that sends next when the link becomes free. So only one frame waits in the ring,
 * and as many more as the link sends in AHEAD_NS, the time that waking up takes.
 */
static uint16_t data_room(const struct process_hca *p)
{
    int64_t ahead_ps = AHEAD_NS * PS_PER_NS / clock_dilation(p->sh), busy_ps;
    uint16_t waiting = io_port_untaken(p->port, ENDPOINT_DATA);

    if (waiting >= PORT_RING)
        return 0;
    busy_ps = waiting ? waiting_ps(p, waiting) : 0;
    if (waiting && busy_ps >= ahead_ps)
        return 0;
    return (uint16_t)RTE_MIN(1 + (ahead_ps - busy_ps) / RTE_MAX(p->frame_ps, (int64_t)1),
                             (int64_t)PORT_RING - waiting);
}

/* Records the lengths of n data frames that are offered to the port. */
static void note_lengths(struct process_hca *p, uint16_t n)
{
    for (uint16_t i = 0; i < n; i++)
        p->sent_bytes[(uint16_t)(p->n_sent + i) % PORT_RING] =
            (uint16_t)frame_wire_bytes(p->stash[ENDPOINT_DATA][i]);
}

/* Sends at most `room` frames of a queue, until it is empty or its ring is full. Returns the number
 * of frames sent. */
static unsigned send_queue(struct process_hca *p, enum endpoint_queue q, unsigned room,
                           int64_t now_ps)
{
    unsigned sent = 0;

    for (;;) {
        uint16_t n = p->n_stash[q], k;

        if (!n && sent < room)
            n = p->ep.output(p->ep.ctx, q, p->stash[q],
                             (uint16_t)RTE_MIN(room - sent, (unsigned)PORT_BURST), now_ps);
        if (!n)
            return sent;
        T_ASSERT_HOT(n <= PORT_BURST, "more frames are stashed than the stash holds");
        if (q == ENDPOINT_DATA)
            note_lengths(p, n);
        k = io_port_tx(p->port, (uint16_t)q, p->stash[q], n);
        T_ASSERT_HOT(k <= n, "the port took more frames than it was given");
        sent += k;
        p->n_sent = (uint16_t)(p->n_sent + (q == ENDPOINT_DATA ? k : 0));
        p->n_stash[q] = n - k;
        if (k == n)
            continue;
        for (uint16_t i = 0; i < n - k; i++)
            p->stash[q][i] = p->stash[q][i + k];
        return sent;
    }
}

/* Sends data frames while the NIC may have more. *held: some remain. */
static unsigned send_data(struct process_hca *p, int64_t now_ps, bool *held)
{
    unsigned sent = 0, n;
    uint16_t room;

    atomic_store_explicit(&p->page->wants_room, 0, memory_order_relaxed);
    do {
        room = data_room(p);
        n = send_queue(p, ENDPOINT_DATA, room, now_ps);
        sent += n;
        *held = n >= room && p->ep.next(p->ep.ctx) <= now_ps;
        if (*held) /* set before data_room() reads the NIC's progress again */
            atomic_store(&p->page->wants_room, 1);
    } while (*held && room);
    return sent;
}

unsigned process_transmit(struct process_hca *p, int64_t now_ps)
{
    unsigned sent;
    bool held;

    if (!p->up) {
        drop_output(p, now_ps);
        return 0;
    }
    sent = send_queue(p, ENDPOINT_ACK, UINT_MAX, now_ps);
    sent += send_data(p, now_ps, &held);
    if (sent) {
        process_ring_nic(p);
        p->sent_ns = clock_mono_ns();
    }
    held |= p->n_stash[ENDPOINT_ACK] || p->n_stash[ENDPOINT_DATA];
    /* The NIC rings when it has taken frames; the retry is a safety net. */
    p->retry_ns = held ? clock_mono_ns() + process_ring_ns(p, RETRY_MIN_NS, RETRY_MAX_NS) : 0;
    return sent;
}

unsigned process_progress(struct process_hca *p)
{
    int64_t now_ps = clock_fabric_ps(p->sh);
    unsigned n = process_frames_receive(p, now_ps);

    if (p->ep.next(p->ep.ctx) <= now_ps)
        p->ep.tick(p->ep.ctx, now_ps);
    n += process_transmit(p, now_ps);
    process_fault_report(p->hca);
    return n;
}
