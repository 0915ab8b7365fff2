/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One clock for all machines. The first machine that is up makes it and gives it a name, the epoch;
 * the others follow it: every half second they compute a line that meets the owner's half a second
 * later, so fabric time neither jumps nor goes back. If the owner is gone, the lowest machine that
 * has this epoch owns it from then on, and goes on at its own speed.
 *
 * Machines that start while they cannot reach each other make a clock each. Their links stay down,
 * since either's frames would be years early or late for the other.
 */
#include "io/trunk/trunk_priv.h"

#include "base/log.h"

#include <endian.h>
#include <rte_common.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define ALONE_NS   1000000000 /* after that a machine that has heard of no clock makes one */
#define SURE_N     3          /* exchanges with the owner before its clock is taken over */
#define LEAD_NS    5000000    /* as of a change of dilation (clock.c) */
#define DILATE_NS  30000000   /* the others must hear of a change before it takes effect */
#define FAR_NS     1000000000 /* a change further away is not waited for */
#define SKEW_MOST  0.2
#define PPB        1e9

static struct clock_state owners_line(const struct trunk *t)
{
    const struct trunk_state *s = &t->peer[t->owner].state;

    return (struct clock_state){.change_ns = (int64_t)s->change_ns,
                                .change_ps = (int64_t)s->change_ps,
                                .before = s->before,
                                .dilation = s->dilation,
                                .before_skew_ppb = (int32_t)s->before_skew_ppb,
                                .skew_ppb = (int32_t)s->skew_ppb};
}

/* ---- which clock ---- */

/* A machine that has a clock; -1: none is known to have one. Its owner, if that is there. */
static int owner_there(const struct trunk *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        const struct trunk_peer *p = &t->peer[i];
        unsigned o = p->state.owner;

        if (i == t->me || !p->alive || !p->state.epoch)
            continue;
        if (o != t->me && t->peer[o].alive && t->peer[o].state.epoch == p->state.epoch)
            return (int)o;
        return (int)i;
    }
    return -1;
}

/* Whether all that come before this machine are known to have no clock and not to be there. */
static bool may_make(const struct trunk *t, int64_t now_ns)
{
    bool all = true;

    for (unsigned i = 0; i < t->n; i++) {
        if (i == t->me)
            continue;
        if (i < t->me && t->peer[i].alive)
            return false;
        all &= t->peer[i].alive && t->peer[i].state_ns;
    }
    return all || now_ns - t->began_ns > ALONE_NS;
}

bool trunk_clock_agree(struct trunk *t, int64_t now_ns, struct clock_state *out)
{
    int owner = owner_there(t);
    struct follow_line l;

    if (owner >= 0) {
        t->owner = (unsigned)owner;
        if (t->peer[owner].received < SURE_N + 2 ||
            !follow_line(&t->peer[owner].follow, now_ns, &l))
            return false;
        *out = t->owner_was = owners_line(t);
        out->change_ns = follow_ours(&l, out->change_ns);
        t->epoch = t->peer[owner].state.epoch;
        return true;
    }
    if (!may_make(t, now_ns))
        return false;
    while (!t->epoch)
        if (getrandom(&t->epoch, sizeof(t->epoch), 0) < 0)
            return false;
    t->owner = t->me;
    *out = (struct clock_state){
        .change_ns = now_ns, .before = t->cfg.dilation, .dilation = t->cfg.dilation};
    return true;
}

/* ---- following ---- */

static int32_t skew_for(int64_t ps, int64_t ns, uint32_t dilation)
{
    double skew = (double)ps * dilation / (1000.0 * (double)ns) - 1;

    return (int32_t)(PPB * RTE_MIN(RTE_MAX(skew, -SKEW_MOST), SKEW_MOST));
}

static void follow_owner(struct trunk *t, int64_t now_ns)
{
    struct clock_state theirs = owners_line(t), ours = clock_state_of(t->sh->clock);
    int64_t at = RTE_MAX(now_ns + LEAD_NS, ours.change_ns), change, meet, here;
    struct follow_line l;

    if (!follow_line(&t->peer[t->owner].follow, now_ns, &l) || ours.change_ns > now_ns)
        return;
    change = follow_ours(&l, theirs.change_ns);
    if (change > at && change - at < FAR_NS)
        at = change;
    here = clock_line_ps(&ours, at) + 1;
    meet = clock_line_ps(&theirs, follow_theirs(&l, at + FOLLOW_INTERVAL_NS));
    clock_follow(t->sh->own_clock, at, theirs.dilation,
                 skew_for(meet - here, FOLLOW_INTERVAL_NS, theirs.dilation));
    t->owner_was = theirs;
    here -= clock_line_ps(&theirs, follow_theirs(&l, at));
    atomic_store(&t->sh->own_clock->unsure_ns,
                 l.unsure_ns + (here < 0 ? -here : here) * theirs.dilation / 1000);
}

void trunk_clock_heard(struct trunk *t, unsigned from, bool interval_over, int64_t now_ns)
{
    struct trunk_peer *p = &t->peer[from];
    struct clock_state line;
    bool other;

    if (!t->sh)
        return;
    other = p->state.epoch && p->state.epoch != t->epoch;
    if (other && !p->other_clock)
        fprintf(stderr,
                "trib-switch: machine %s has a clock of its own, made while it and this machine could "
                "not reach each other: its links stay down until one of the two is taken down and "
                "up again\n",
                t->fab->machines[from].name);
    p->other_clock = other;
    if (from != t->owner || other || !p->state.epoch)
        return;
    line = owners_line(t);
    if (interval_over || memcmp(&line, &t->owner_was, sizeof(line)) != 0)
        follow_owner(t, now_ns);
}

/* The owner is gone: the lowest of those that have its clock. */
void trunk_clock_tick(struct trunk *t)
{
    unsigned o = 0;

    if (t->owner == t->me || peer_usable(&t->peer[t->owner]))
        return;
    while (o != t->me && !(peer_usable(&t->peer[o]) && t->peer[o].state.epoch == t->epoch))
        o++;
    t->owner = o;
    if (o == t->me)
        atomic_store(&t->sh->own_clock->unsure_ns, 0);
    T_LOG("trunk", LOG_INFO, "the fabric's clock is now that of machine %s",
          t->fab->machines[o].name);
}

void trunk_clock_dilate(struct trunk *t, uint32_t dilation)
{
    struct clock_state s = clock_state_of(t->sh->clock);
    uint8_t m[sizeof(struct trunk_header) + sizeof(dilation)];
    int64_t now = clock_mono_ns();

    if (s.dilation == dilation)
        return;
    if (t->owner == t->me) {
        clock_follow(t->sh->own_clock, RTE_MAX(now, s.change_ns) + DILATE_NS, dilation, s.skew_ppb);
        peers_say(t);
        return;
    }
    dilation = htobe32(dilation);
    memcpy(trunk_body(m), &dilation, sizeof(dilation));
    peers_send(t, t->owner, TRUNK_DILATE, m, sizeof(m));
}
