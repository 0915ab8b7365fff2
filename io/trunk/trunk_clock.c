/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One clock for all machines. The first machine that is up makes it and owns it, the others follow:
 * every half second they compute a line that meets the owner's half a second later, so fabric time
 * neither jumps nor runs backwards. When the owner is gone, the lowest machine with a clock becomes the
 * owner and continues at its own speed.
 *
 * Machines that could not reach each other for a while may have an owner each. When they meet, the
 * clock that is ahead stays, because the other can catch up quickly but must never run backwards.
 * Links between machines stay down until their clocks agree.
 */
#include "io/trunk/trunk_priv.h"

#include "base/assert.h"
#include "base/log.h"

#include <endian.h>
#include <math.h>
#include <rte_common.h>
#include <stdio.h>
#include <string.h>

#define ALONE_NS  1000000000 /* a machine that has heard of no clock for so long makes one */
#define SURE_N    3          /* messages of the owner before its clock is adopted */
#define LEAD_NS   5000000    /* a change of speed is set so far ahead, as in clock.c */
#define DILATE_NS 150000000  /* a change takes effect so late that the others hear of it before */
#define WAIT_NS   1000000000 /* a change of the owner's that is further ahead is ignored for now */
#define FAR_NS    5000000    /* wall time by which clocks may differ */
#define FAR_FOR   1000000000 /* clocks may differ for so long, as after a change of speed */
#define SKEW_MOST 0.2
#define CRAWL     5 /* a clock that is ahead slows down to 1/5 of the owner's speed at most */
#define PPB       1e9
#define TIME_MOST (1ull << 62) /* largest time, in ns or ps, that another machine may state */
#define LINE_NS   (1ll << 53)  /* longest time since a clock's last change: 104 days */

static struct clock_state line_of(const struct trunk_peer *p)
{
    const struct trunk_state *s = &p->state;

    return (struct clock_state){.change_ns = (int64_t)s->change_ns,
                                .change_ps = (int64_t)s->change_ps,
                                .before = s->before,
                                .dilation = s->dilation,
                                .before_skew_ppb = (int32_t)s->before_skew_ppb,
                                .skew_ppb = (int32_t)s->skew_ppb};
}

static bool has_clock(const struct trunk_peer *p)
{
    return peer_alive(p) && p->state.has_clock;
}

/* How far a machine's clock is ahead of ours, in ps. False: not known. */
static bool ahead(const struct trunk *t, const struct trunk_peer *p, int64_t now_ns, int64_t *ps)
{
    struct clock_state theirs = line_of(p);
    struct follow_line l;

    if (!has_clock(p) || !follow_line(&p->follow, now_ns, &l))
        return false;
    *ps = clock_line_ps(&theirs, follow_theirs(&l, now_ns)) - clock_fabric_at(t->sh, now_ns);
    return true;
}

/* ---- what another machine says ---- */

bool trunk_clock_plausible(const struct trunk_state *s)
{
    const int64_t ns = (int64_t)(s->sent_ns - s->change_ns);
    const uint32_t dilation = ns < 0 ? s->before : s->dilation;
    const int32_t skew = (int32_t)(ns < 0 ? s->before_skew_ppb : s->skew_ppb);
    __int128 ps;

    if (RTE_MAX(s->sent_ns, RTE_MAX(s->heard_sent_ns, s->heard_ns)) > TIME_MOST)
        return false;
    if (!s->has_clock)
        return true;
    if (!s->dilation || !s->before || RTE_MAX(s->change_ns, s->change_ps) > TIME_MOST ||
        ns > LINE_NS || ns < -LINE_NS)
        return false;
    ps = (__int128)ns * 1000 / dilation;
    ps += ps * skew / (int64_t)PPB + s->change_ps;
    return ps >= 0 && ps < (__int128)TIME_MOST;
}

int64_t trunk_clock_wall_ns(int64_t ps, uint32_t dilation)
{
    const __int128 ns = (__int128)ps * dilation / 1000, most = INT64_MAX / 2;

    return (int64_t)RTE_MIN(RTE_MAX(ns, -most), most);
}

/* ---- which clock ---- */

/* The clock's owner as some machine with a clock names it, or that machine; -1: none has a clock. */
static int owner_there(const struct trunk *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        const struct trunk_peer *p = &t->peer[i];
        unsigned o = p->state.owner;

        if (i == t->me || !has_clock(p))
            continue;
        return o != t->me && has_clock(&t->peer[o]) ? (int)o : (int)i;
    }
    return -1;
}

/* Whether to make the clock: the lowest of machines that start together does, or one alone for ALONE_NS. */
static bool may_make(const struct trunk *t, int64_t now_ns)
{
    bool all = true;

    for (unsigned i = 0; i < t->n; i++) {
        if (i == t->me)
            continue;
        if (i < t->me && session_open(&t->peer[i].session))
            return false;
        all &= peer_alive(&t->peer[i]);
    }
    return all || now_ns - t->began_ns > ALONE_NS;
}

bool trunk_clock_agree(struct trunk *t, int64_t now_ns, struct clock_state *out)
{
    int owner = owner_there(t);
    struct follow_line l;

    if (owner >= 0) {
        t->owner = (unsigned)owner;
        if (t->peer[owner].received < SURE_N || !follow_line(&t->peer[owner].follow, now_ns, &l))
            return false;
        *out = t->owner_was = line_of(&t->peer[owner]);
        t->dilation = out->dilation;
        out->change_ns = follow_ours(&l, out->change_ns);
        return true;
    }
    if (!may_make(t, now_ns))
        return false;
    t->owner = t->me;
    t->dilation = t->cfg.dilation;
    *out = (struct clock_state){
        .change_ns = now_ns, .before = t->cfg.dilation, .dilation = t->cfg.dilation};
    return true;
}

/* The machine that should own the clock, as far as this one knows. */
static unsigned choose_owner(const struct trunk *t, int64_t now_ns)
{
    const struct trunk_peer *p = &t->peer[t->owner];
    unsigned o = 0;
    int64_t ps;

    if (t->owner != t->me && has_clock(p)) {
        unsigned its = p->state.owner; /* it may follow another clock, which was ahead */

        if (its == t->me) /* each follows the other: the lower machine owns it */
            return RTE_MIN(t->me, t->owner);
        return its != t->owner && peer_alive(&t->peer[its]) ? its : t->owner;
    }
    if (t->owner != t->me) {
        while (o != t->me && !has_clock(&t->peer[o]))
            o++;
        return o;
    }
    for (unsigned i = 0; i < t->n; i++)
        if (i != t->me && t->peer[i].state.owner == i && ahead(t, &t->peer[i], now_ns, &ps)) {
            int64_t wall_ns = trunk_clock_wall_ns(ps, clock_dilation(t->sh));

            if (wall_ns > FAR_NS || (wall_ns > -FAR_NS && i < t->me))
                return i;
        }
    return t->me;
}

/* Sets the owner's clock to the dilation asked for. Waits until the change before has taken effect:
 * a clock line holds one change. */
static void speed_set(struct trunk *t)
{
    struct clock_state s = clock_state_of(t->sh->clock);
    int64_t now = clock_mono_ns();

    T_ASSERT(t->dilation, "a clock runs without a dilation");
    if ((s.dilation == t->dilation && !s.skew_ppb) || s.change_ns > now)
        return;
    clock_follow(t->sh->own_clock, now + DILATE_NS, t->dilation, 0);
    peers_say(t);
}

void trunk_clock_tick(struct trunk *t)
{
    unsigned o = choose_owner(t, clock_mono_ns());

    if (t->owner == t->me)
        speed_set(t);
    if (o == t->owner)
        return;
    t->owner = o;
    memset(&t->owner_was, 0, sizeof(t->owner_was));
    if (o == t->me)
        atomic_store(&t->sh->own_clock->unsure_ns, 0);
    T_LOG("trunk", LOG_INFO, "the fabric's clock is now that of machine %s",
          t->fab->machines[o].name);
}

/* ---- following ---- */

/* The speed that makes `ps` of fabric time pass in `ns`. dilation: in, the owner's; out, the one to set,
 * which differs only where skew_ppb alone would be too large. */
static void speed_for(int64_t ps, int64_t ns, uint32_t *dilation, int32_t *skew_ppb)
{
    double want = 1000.0 * (double)ns / (double)RTE_MAX(ps, (int64_t)1), skew;

    if (want > *dilation * (double)CRAWL)
        want = *dilation * (double)CRAWL;
    if (fabs(*dilation / want - 1) > SKEW_MOST)
        *dilation = want < 1 ? 1 : want > UINT32_MAX ? UINT32_MAX : (uint32_t)want;
    skew = *dilation / want - 1;
    *skew_ppb = (int32_t)(PPB * RTE_MIN(RTE_MAX(skew, -1 + SKEW_MOST), 2.0));
}

static void follow_owner(struct trunk *t)
{
    struct clock_state theirs = line_of(&t->peer[t->owner]), ours = clock_state_of(t->sh->clock);
    const int64_t now = clock_mono_ns(); /* the message may have waited since its arrival */
    int64_t at = RTE_MAX(now + LEAD_NS, ours.change_ns), change, meet, here;
    uint32_t dilation = theirs.dilation;
    struct follow_line l;
    int32_t skew;

    if (!follow_line(&t->peer[t->owner].follow, now, &l) || ours.change_ns > now)
        return;
    change = follow_ours(&l, theirs.change_ns);
    if (change > at && change - at < WAIT_NS)
        at = change;
    here = clock_line_ps(&ours, at) + 1;
    meet = clock_line_ps(&theirs, follow_theirs(&l, at + FOLLOW_INTERVAL_NS));
    speed_for(meet - here, FOLLOW_INTERVAL_NS, &dilation, &skew);
    clock_follow(t->sh->own_clock, at, dilation, skew);
    t->owner_was = theirs;
    t->dilation = theirs.dilation;
    here -= clock_line_ps(&theirs, follow_theirs(&l, at));
    atomic_store(&t->sh->own_clock->unsure_ns,
                 l.unsure_ns + trunk_clock_wall_ns(here < 0 ? -here : here, theirs.dilation));
}

static void note_far(struct trunk *t, unsigned from, int64_t now_ns)
{
    struct trunk_peer *p = &t->peer[from];
    int64_t ps, wall_ns;
    bool far;

    if (!ahead(t, p, now_ns, &ps)) {
        p->far = true; /* it has no clock yet */
        return;
    }
    wall_ns = trunk_clock_wall_ns(ps < 0 ? -ps : ps, clock_dilation(t->sh));
    if (wall_ns < (p->far ? FAR_NS / 5 : FAR_NS))
        p->near_ns = now_ns;
    far = p->far ? p->near_ns != now_ns : now_ns - p->near_ns > FAR_FOR;
    if (far != p->far)
        fprintf(stderr, "trib-switch: the clock of machine %s %s\n", t->fab->machines[from].name,
                far ? "differs from this one's by more than a moment: links to it stay down until "
                      "the two agree"
                    : "agrees with this one's");
    p->far = far;
}

void trunk_clock_heard(struct trunk *t, unsigned from, bool interval_over, int64_t now_ns)
{
    struct trunk_peer *p = &t->peer[from];
    struct clock_state line = line_of(p);

    if (!t->sh)
        return;
    note_far(t, from, now_ns);
    if (from == t->owner && p->state.has_clock &&
        (interval_over || memcmp(&line, &t->owner_was, sizeof(line)) != 0))
        follow_owner(t);
}

void trunk_clock_dilate(struct trunk *t, uint32_t dilation)
{
    uint8_t m[sizeof(struct trunk_header) + sizeof(dilation)];

    if (t->owner == t->me) {
        t->dilation = dilation;
        speed_set(t);
    } else {
        dilation = htobe32(dilation);
        memcpy(trunk_body(m), &dilation, sizeof(dilation));
        peers_send(t, t->owner, TRUNK_DILATE, m, sizeof(m));
    }
}
