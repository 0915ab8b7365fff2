/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of the NIC, shared by nic.c (control), nic_rx.c (link to process), nic_tx.c (process
 * to link) and nic_igmp.c (multicast memberships). */
#ifndef TRIB_SWITCH_NIC_PRIV_H
#define TRIB_SWITCH_NIC_PRIV_H

#include "base/cacheline.h"
#include "switch/mcast.h"
#include "switch/nic.h"
#include "switch/node_events.h"

#define NIC_STASH  8u
#define NIC_NEAR   4u /* slots allocated with the port; others are allocated with their process */
#define NIC_RX_MAX 65536u /* frames that wait for a process */
#define NIC_WORDS  ((FAB_MAX_SLOTS + 63) / 64)
#define NIC_FEW                                                                                    \
    8u /* frames that wait in the slot itself rather than in its ring: a power of
                        two */
_Static_assert((NIC_FEW & (NIC_FEW - 1)) == 0, "a power of two");
/* Frames that a process did not take are offered again when it kicks, or after this time. It is long,
 * because every retry is an event, and a late loop has to run all of them. */
#define NIC_RETRY_PS (50 * PS_PER_US)
/* PEER_DOWN is repeated after this gap, which doubles each time up to AGAIN_LAST: it is not
 * acknowledged, links lose frames, and an aggregation node that misses it would wait for ever. */
#define NIC_AGAIN_PS      PS_PER_MS
#define NIC_AGAIN_LAST_PS (32 * PS_PER_MS)

enum nic_way { NIC_UP, NIC_LOOP };

/* A few frames pulled from an endpoint in advance, so that a memif is read in bursts. */
struct nic_stash {
    uint8_t head, n;
    uint8_t way[NIC_STASH]; /* enum nic_way */
    struct rte_mbuf *m[NIC_STASH];
};

/* Fields in order of use: see struct egress. */
struct nic_slot {
    bool attached;
    bool shut;    /* its process is there but not attached: nic_offence.c */
    bool waits;   /* the process left frames at the last offer */
    bool stalled; /* credit_ps is spent: frames that it does not take are dropped */
    uint32_t rx_mask, rx_head, rx_tail;
    uint32_t seen;        /* PFC has accounted for the frames before this one */
    struct rte_mbuf **rx; /* `few`; or `ring`, from the first overflow until it is empty */
    uint64_t rx_bytes;
    int64_t next_ps;  /* result of the last next() (nic_ask) */
    int64_t tick_ps;  /* when the endpoint's tick is due, even while frames are ready */
    int64_t floor_ps; /* least tick_ps: the tick has just run */
    struct endpoint ep;
    struct nic_stash stash[ENDPOINT_QUEUES];
    struct rte_mbuf *few[NIC_FEW];
    uint32_t ring_mask;
    struct rte_mbuf **ring; /* power of two */
    int64_t credit_ps;      /* time for which it may hold up others (nic_stall.c), */
    int64_t looked_ps;      /* at this time */
    uint64_t stall_drops;   /* frames dropped because it is stalled */
    struct nic_offences {
        uint64_t frames;  /* since the port was opened */
        int64_t since_ps; /* start of the window; */
        uint32_t recent;  /* frames in it */
        uint8_t why;      /* enum drop of the last one */
        bool was_shut;
    } offence;
} CACHELINE_ALIGNED;

struct nic_port {
    struct nic *nic;
    struct nic_slot *slot; /* [NIC_NEAR] */
    struct egress *loop;
    int64_t retry_ps; /* when to offer frames again that were not taken; see again_ps */
    int64_t
        owed_ps; /* the link is idle since then because a process is late; PS_NEVER: it is not */
    uint64_t attached[NIC_WORDS]; /* bit per slot */
    uint16_t port;
    uint8_t mac[6];
    bool looped;    /* a process has sent to its own address: kicks also wake the loop */
    bool shut;      /* all slots are shut */
    bool loop_used; /* false: nothing was ever sent to the loop, so it is empty */
    uint32_t rx_limit_pkts;
    uint64_t rx_limit_bytes;           /* capacity of a slot's receive queue */
    uint32_t turn[2][ENDPOINT_QUEUES]; /* [way]: slot to serve next */
    uint32_t ip;
    struct mcast *mc;  /* its ports are our slots */
    int64_t report_ps; /* nic_igmp.c: time up to which announcements of joins are used up */
    uint64_t reports_refused;
    uint64_t gone[NIC_WORDS];     /* bit per slot: its process has ended */
    struct nic_slot **far;        /* [n_slots - NIC_NEAR] or NULL */
    int64_t again_ps;             /* when to repeat PEER_DOWN for them, */
    int64_t gap_ps;               /* gap before that */
    uint64_t shutting[NIC_WORDS]; /* bit per slot: to be shut in the next tick */
    uint32_t n_shut;              /* slots that were shut since the port was opened */
} CACHELINE_ALIGNED;

struct nic {
    struct node nd;
    unsigned n_slots, n_words;
    int64_t stall_ps;   /* nic_set_stall() */
    int64_t lag_ps;     /* node_cfg.lag_ps */
    int64_t offence_ps; /* nic_set_offence_window() */
    void (*offended)(void *ctx, uint16_t node, uint16_t port, unsigned slot);
    void *offended_ctx;
    struct nic_port *p;
    int64_t due_ps[]; /* [n_ports] when a port's retry, loop or slots have work (nic_settle) */
};

static inline struct nic *nic_of(struct node *nd)
{
    return (struct nic *)nd;
}

/* NULL: there is no such slot, or it was never used. */
static inline struct nic_slot *nic_slot_at(const struct nic_port *np, unsigned slot)
{
    if (likely(slot < NIC_NEAR))
        return slot < np->nic->n_slots ? &np->slot[slot] : NULL;
    return np->far && slot < np->nic->n_slots ? np->far[slot - NIC_NEAR] : NULL;
}

/* The slots of a set, in order. */
#define nic_each(np, set, slot)                                                                    \
    for (unsigned w_ = 0; w_ < (np)->nic->n_words; w_++)                                           \
        for (uint64_t b_ = (set)[w_]; b_; b_ &= b_ - 1)                                            \
            for (unsigned once_ = 1, slot = w_ * 64 + (unsigned)__builtin_ctzll(b_); once_;        \
                 once_ = 0)

static inline void nic_set_put(uint64_t *set, unsigned slot, bool in)
{
    if (in)
        set[slot / 64] |= 1ull << slot % 64;
    else
        set[slot / 64] &= ~(1ull << slot % 64);
}

static inline bool nic_set_has(const uint64_t *set, unsigned slot)
{
    return set[slot / 64] >> slot % 64 & 1;
}

static inline bool nic_set_any(const struct nic_port *np, const uint64_t *set)
{
    uint64_t any = 0;

    for (unsigned w = 0; w < np->nic->n_words; w++)
        any |= set[w];
    return any;
}

static inline uint32_t nic_set_count(const struct nic_port *np, const uint64_t *set)
{
    uint32_t n = 0;

    for (unsigned w = 0; w < np->nic->n_words; w++)
        n += (uint32_t)__builtin_popcountll(set[w]);
    return n;
}

static inline uint32_t nic_rx_used(const struct nic_slot *s)
{
    return s->rx_tail - s->rx_head;
}

/* The destination slot of a RoCE frame: the top 8 bits of its QPN minus one; slot 0 for low
 * QPNs. */
static inline unsigned nic_slot_of_qpn(uint32_t qpn)
{
    return qpn >> 16 ? (qpn >> 16) - 1 : 0;
}

/* Whether a slot's queue has reached half of its limit: then senders on the same host are held back. */
static inline bool nic_rx_half_full(const struct nic_port *np, const struct nic_slot *s)
{
    return nic_rx_used(s) >= np->rx_limit_pkts / 2 || s->rx_bytes >= np->rx_limit_bytes / 2;
}

/* An empty slot goes back to `few`, so that its ring is touched only when needed. */
static inline void nic_rx_begin(struct nic_slot *s)
{
    s->rx_head = s->rx_tail = s->seen = 0;
    s->rx = s->few;
    s->rx_mask = NIC_FEW - 1;
}

/* nic_stall.c */
/* Call it when the process has left frames. True: its credit is spent, so the caller drops them. */
bool nic_stall_look(const struct nic_port *np, struct nic_slot *s, int64_t now_ps);
/* Call it when the process took n frames after it had left some or was stalled. */
void nic_stall_took(const struct nic_port *np, struct nic_slot *s, uint32_t n, int64_t now_ps);
void nic_stall_reset(const struct nic_port *np, struct nic_slot *s);

/* nic_offence.c */
/* Counts a frame of the slot's process that was dropped as `why`. */
void nic_offence(struct nic_port *np, unsigned slot, enum drop why, int64_t now_ps);
void nic_shut_pending(struct nic_port *np, int64_t now_ps);

/* nic.c: frees the frames from and for the slot, leaves its groups, and tells aggregation nodes that the
 * process is gone. */
void nic_leave(struct nic_port *np, unsigned slot, enum drop why, int64_t now_ps);

/* nic_rx.c */
/* Appends a frame to the slot's ring; nic_rx_flush() offers it. */
void nic_rx_put(struct nic_port *np, unsigned slot, struct rte_mbuf *m);
/* Drops the frames that wait for a slot. */
void nic_rx_drop(struct nic_port *np, unsigned slot, enum drop why, int64_t now_ps);
/* nic_tx.c */
struct rte_mbuf *nic_pull_up(void *ctx, int64_t now_ps,
                             bool lossless_paused); /* ctx: struct node_port */
struct rte_mbuf *nic_pull_loop(void *ctx, int64_t now_ps,
                               bool lossless_paused); /* ctx: struct nic_port */

/* nic_igmp.c */
/* Takes an IGMP frame of a process. */
void nic_igmp_input(struct nic_port *np, unsigned slot, struct rte_mbuf *m,
                    const struct packet_class *k, int64_t now_ps);
/* Takes an IGMP frame of the switch. touched: adds the slots that got a frame. */
void nic_igmp_from_link(struct nic_port *np, struct rte_mbuf *m, const struct packet_class *k,
                        int64_t now_ps, uint64_t *touched);
void nic_igmp_forget(struct nic_port *np, unsigned slot,
                     int64_t now_ps);                     /* the process has ended */
void nic_igmp_again(struct nic_port *np, int64_t now_ps); /* after the switch forgot the port */

/*
 * The deadline of an endpoint changes only when it is called or its owner kicks it, so the NIC
 * reads it only then: after input, output and tick, and at a kick. An idle port costs nothing.
 */
static inline void nic_ask(struct nic_slot *s)
{
    s->next_ps = s->ep.next(s->ep.ctx);
    T_ASSERT_HOT(s->next_ps >= 0, "an endpoint has a deadline before the beginning of time");
    /* 0 ("frames are ready") is no deadline: the kick that made them ready has already woken the
     * queues. */
    s->tick_ps = s->next_ps       ? s->next_ps
                 : s->ep.deadline ? RTE_MAX(s->ep.deadline(s->ep.ctx), 1)
                                  : PS_NEVER;
}

/* Recomputes the deadline of a port; called last by every function that may change it. */
static inline void nic_settle(struct nic_port *np)
{
    int64_t t = np->retry_ps;

    if (unlikely(np->loop_used))
        t = RTE_MIN(t, egress_next(np->loop));
    nic_each(np, np->attached, slot)
    {
        const struct nic_slot *s = nic_slot_at(np, slot);

        T_ASSERT_HOT(s && s->attached, "a slot is in the set of attached ones and is not");
        t = RTE_MIN(t, RTE_MAX(s->tick_ps, s->floor_ps));
    }
    np->nic->due_ps[np->port] = t;
}

/* Whether a process has frames to send. */
static inline bool nic_ready(const struct nic_port *np, int64_t now_ps)
{
    nic_each(np, np->attached, slot)
    {
        const struct nic_slot *s = nic_slot_at(np, slot);

        if (s->next_ps <= now_ps || s->stash[ENDPOINT_ACK].n || s->stash[ENDPOINT_DATA].n)
            return true;
    }
    return false;
}

/* Wakes the link if there are frames to send; its pull finds the frames for the loop, too. */
static inline void nic_kick_port(struct nic_port *np, int64_t now_ps)
{
    struct egress *link = np->nic->nd.egress[np->port];

    if (!nic_ready(np, now_ps))
        return;
    if (link)
        egress_kick(link, RTE_MAX(RTE_MIN(np->owed_ps, now_ps), now_ps - np->nic->lag_ps));
    np->owed_ps = PS_NEVER;
    if (np->looped || !link) {
        np->loop_used = true;
        egress_kick(np->loop, now_ps);
    }
}

/* nic_rx.c */
void nic_input(struct node *nd, uint16_t port, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
void nic_loop_input(struct nic_port *np, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
/* Offers the waiting frames to the process; returns how many it took. */
uint32_t nic_rx_flush(struct nic_port *np, unsigned slot, int64_t now_ps);

#endif
