/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A watchdog against PFC deadlock and PFC storms, as switches have. A queue is stuck when its class is
 * paused and no frame has left for after_ps: a cycle of switches wait for each other, or a neighbour
 * pauses and never resumes. The watchdog drops its frames, and later ones, until the queue has not been
 * paused for after_ps; then it restores the queue. Connections retransmit lost frames.
 *
 * Each port of a switch has one; NICs have none, because no other node waits for their links.
 */
#ifndef TRIB_SWITCH_WATCHDOG_H
#define TRIB_SWITCH_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct node;

struct watchdog {
    bool watching;
    uint64_t taken;   /* for egress_stuck() */
    int64_t since_ps; /* stuck since; while it discards: last seen paused */
};

/* The watchdogs of a node. All zero but due_ps: off. */
struct watchdogs {
    int64_t due_ps;   /* next check; PS_NEVER: no port is paused */
    int64_t after_ps; /* 0: off */
    /* Called when a queue begins to discard, or is restored; may be NULL. */
    void (*changed)(void *ctx, uint16_t node, uint16_t port, bool discards);
    void *ctx;
};

/* A pause came in on a port that has a link. */
void watchdog_pause(struct node *nd, uint16_t port, int64_t now_ps);
void watchdog_tick(struct node *nd, int64_t now_ps);
/* Sets the timeout; 0: off, and queues that discard are restored. */
void watchdog_set(struct node *nd, int64_t after_ps, int64_t now_ps);

#endif
