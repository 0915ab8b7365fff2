/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"
#include "io/link_change.h"

#include "fabric/fabric.h"
#include "switch/queue/link_fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORD 64

enum { PROBABILITY, TIME, NUMBER, RATE };

#define TO(f)  offsetof(struct link_change, to.f)
#define NEW(f) offsetof(struct link_change, terms.f)
#define SET(f) offsetof(struct link_change, f)
static const struct change_key {
    const char *name;
    int type;
    size_t set, at;
} keys[] = {
    {"loss", PROBABILITY, SET(loss), TO(loss)},
    {"dup", PROBABILITY, SET(dup), TO(dup)},
    {"reorder", PROBABILITY, SET(reorder), TO(reorder)},
    {"corrupt", PROBABILITY, SET(corrupt), TO(corrupt)},
    {"jitter", TIME, SET(jitter), TO(jitter_ps)},
    {"seed", NUMBER, SET(seed), TO(seed)},
    {"rate", RATE, SET(rate), NEW(rate_bps)},
    {"latency", TIME, SET(latency), NEW(latency_ps)},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static int read_number(const char *s, uint64_t *n)
{
    char *end;

    errno = 0;
    *n = strtoull(s, &end, 10);
    return *s >= '0' && *s <= '9' && !*end && !errno ? 0 : -EINVAL;
}

static int read_value(struct link_change *c, const struct change_key *k, const char *value)
{
    void *at = (char *)c + k->at;
    int rc;

    if (k->type == PROBABILITY)
        rc = parse_probability(value, at);
    else if (k->type == NUMBER)
        rc = read_number(value, at);
    else if (k->type == RATE)
        rc = parse_rate(value, at);
    else
        rc = parse_time(value, at) || *(int64_t *)at > PS_PER_S ? -EINVAL : 0;
    if (!rc)
        *((bool *)c + k->set) = true;
    return rc;
}

static const char *expected(const struct change_key *k)
{
    return k->type == PROBABILITY ? "0.0 to 1.0, 1e-6, or 0% to 100%"
           : k->type == TIME      ? "a time up to 1s, such as 2us"
           : k->type == RATE      ? "a rate such as 100Gb/s"
                                  : "a whole number";
}

static int read_word(struct link_change *c, const char *word, char *why, size_t size)
{
    size_t len = strcspn(word, "=");

    if (!strcmp(word, "down") || !strcmp(word, "up")) {
        c->state = *word == 'd' ? LINK_DOWN : LINK_UP;
        return 0;
    }
    if (!strcmp(word, "clear")) {
        c->loss = c->dup = c->reorder = c->corrupt = c->jitter = true;
        c->rate = c->latency = false;
        c->conf = true;
        c->to = (struct egress_faults){.seed = c->to.seed};
        return 0;
    }
    for (size_t i = 0; i < N_KEYS && word[len]; i++) {
        if (strlen(keys[i].name) != len || strncmp(keys[i].name, word, len))
            continue;
        if (!read_value(c, &keys[i], word + len + 1))
            return 0;
        snprintf(why, size, "found %s, expected %s=%s", word, keys[i].name, expected(&keys[i]));
        return -EINVAL;
    }
    snprintf(
        why, size,
        "found %s, expected down, up, clear, rate=, latency=, loss=, dup=, reorder=, corrupt=, "
        "jitter= or seed=",
        word);
    return -EINVAL;
}

int link_change_parse(struct link_change *c, const char *words, char *why, size_t size)
{
    char word[MAX_WORD];
    int rc = 0;

    for (const char *p = words; p && *p && !rc; p += strcspn(p, ","), p += *p == ',') {
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(p, ","), p);
        rc = read_word(c, word, why, size);
    }
    return rc;
}

struct egress_faults link_change_apply(const struct link_change *c, const struct egress_faults *now,
                                       unsigned dirlink)
{
    struct egress_faults f = *now;

    f.loss = c->loss ? c->to.loss : f.loss;
    f.dup = c->dup ? c->to.dup : f.dup;
    f.reorder = c->reorder ? c->to.reorder : f.reorder;
    f.corrupt = c->corrupt ? c->to.corrupt : f.corrupt;
    f.jitter_ps = c->jitter ? c->to.jitter_ps : f.jitter_ps;
    if (c->seed)
        f.seed = fault_mix(c->to.seed, dirlink);
    return f;
}

struct link_terms link_change_terms(const struct link_change *c, const struct link_terms *now,
                                    const struct link_terms *conf)
{
    struct link_terms t = c->conf ? *conf : *now;

    t.rate_bps = c->rate ? c->terms.rate_bps : t.rate_bps;
    t.latency_ps = c->latency ? c->terms.latency_ps : t.latency_ps;
    return t;
}

bool link_change_sets_terms(const struct link_change *c)
{
    return c->rate || c->latency;
}

void link_faults_print(const struct egress_faults *f, char *buf, size_t size)
{
    const struct {
        const char *name;
        double p;
    } p[] = {{"loss", f->loss}, {"dup", f->dup}, {"reorder", f->reorder}, {"corrupt", f->corrupt}};
    size_t len = 0;
    char t[32];

    *buf = 0;
    for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++)
        if (p[i].p > 0 && len < size)
            len += (size_t)snprintf(buf + len, size - len, "%s%s=%g", len ? " " : "", p[i].name,
                                    p[i].p);
    if (f->jitter_ps > 0 && len < size) {
        print_time(f->jitter_ps, t, sizeof(t));
        snprintf(buf + len, size - len, "%sjitter=%s", len ? " " : "", t);
    }
}
