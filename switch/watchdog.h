/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A watchdog against PFC deadlock and PFC storms, as switches have it. A queue whose class is
 * paused and that has waited so long without one frame going is stuck: a cycle of switches wait for
 * each other, or somebody pauses and never ends it. What waits in it is dropped, and what comes for
 * it, until nobody has paused it for as long; then it is as before. Connections send again what was
 * lost.
 *
 * One for each port of a switch, and none for NICs: theirs is not a link that others wait for.
 */
#ifndef TRIB_SWITCH_WATCHDOG_H
#define TRIB_SWITCH_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct node;

struct watchdog {
    bool watching;
    uint64_t taken;   /* as egress_stuck() has it */
    int64_t since_ps; /* stuck since; while it discards: last seen paused */
};

/* The watchdogs of a node. Zero but for due_ps: off. */
struct watchdogs {
    int64_t due_ps;   /* next look; PS_NEVER: nobody is paused */
    int64_t after_ps; /* 0: off */
    /* A queue begins to be discarded, or is restored; may be NULL. */
    void (*told)(void *ctx, uint16_t node, uint16_t port, bool discards);
    void *ctx;
};

/* A pause has come in on a port. */
void watchdog_pause(struct node *nd, uint16_t port, int64_t now_ps);
void watchdog_tick(struct node *nd, int64_t now_ps);
/* Another time to wait; 0: off, what was discarded is restored. */
void watchdog_set(struct node *nd, int64_t after_ps, int64_t now_ps);

#endif
