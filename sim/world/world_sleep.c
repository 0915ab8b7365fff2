/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeps of ranks: timers of the first port of a rank, so that they follow the time of its host
 * where partitions run apart. Only the kick that follows a sleep knows that time. And how long ranks
 * sleep before each of their operations.
 */
#include "sim/world/world_priv.h"

void world_sleep(struct world_sleep *s, int64_t ps)
{
    struct rank *r = &s->w->ranks[s->rank];

    T_ASSERT(!s->on, "something of a rank sleeps twice");
    T_ASSERT(ps > 0, "something of a rank sleeps for no time");
    s->on = true;
    s->left_ps = ps;
    s->next = r->sleeps;
    r->sleeps = s;
    world_kick(&r->port[0]);
}

void world_wake_up(struct world_sleep *s)
{
    struct world_sleep **at;

    if (!s->on)
        return;
    for (at = &s->w->ranks[s->rank].sleeps; *at != s; at = &(*at)->next)
        ;
    *at = s->next;
    s->on = false;
}

void sleeps_begin(struct rank *r, int64_t now)
{
    for (struct world_sleep *s = r->sleeps; s; s = s->next)
        if (s->left_ps) {
            s->end_ps = now + s->left_ps;
            s->left_ps = 0;
        }
}

void sleeps_end(struct rank *r, int64_t now)
{
    struct world_sleep **at = &r->sleeps;

    while (*at)
        if (!(*at)->left_ps && (*at)->end_ps <= now) {
            (*at)->on = false;
            *at = (*at)->next;
            world_wake(r);
        } else {
            at = &(*at)->next;
        }
}

int64_t sleeps_next(const struct rank *r)
{
    int64_t t = PS_NEVER;

    for (const struct world_sleep *s = r->sleeps; s; s = s->next)
        if (!s->left_ps)
            t = RTE_MIN(t, s->end_ps);
    return t;
}

void world_late(struct world *w, unsigned rank, int64_t ps)
{
    T_ASSERT(rank < w->cfg.nranks, "a rank beyond the world's is late");
    w->ranks[rank].late_ps = ps;
}

int64_t world_late_ps(const struct world *w, unsigned rank)
{
    return w->ranks[rank].late_ps;
}
