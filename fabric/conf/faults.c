/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault plans read from files: each entry names a link, node, host, rank or aggregation node, and
 * has the keys of that kind.
 */
#include "fabric/conf/faults.h"

#include "base/nearest.h"
#include "fabric/build.h"
#include "fabric/link_terms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a)    (sizeof(a) / sizeof((a)[0]))
#define TIME_MAX  1000000000000ull /* 1 s, as in conf files */
#define SLOW_MAX  1000000u
#define MBUFS_MAX 0x7fffffffu

/* An entry as read from the file. */
struct fault_entry {
    int64_t at_ps, jitter_ps, restart_ps, told_ps, late_ps, latency_ps;
    uint64_t rate_bps;
    char link[128], name[128];
    uint32_t rank, seed, slow, mbufs;
    bool down, up, clear, die;
    double loss, dup, reorder, corrupt;
};

#define AT(f) offsetof(struct fault_entry, f)
/* Fabric time from the first operation on. Default: from the beginning, before the
 * ranks connect. */
#define AT_KEY RANGE_KEY("at", KEY_TIME, AT(at_ps), 0, TIME_MAX, NULL)
static const struct key link_keys[] = {
    AT_KEY,
    /* A name as for `trib link`, or `"all"`. */
    PLAIN_KEY("link", KEY_TEXT, AT(link), NULL),
    /* The link goes down. */
    PLAIN_KEY("down", KEY_BOOL, AT(down), NULL),
    /* It comes up. */
    PLAIN_KEY("up", KEY_BOOL, AT(up), NULL),
    /* Probability that a frame is lost, as of a link of a conf. */
    PLAIN_KEY("loss", KEY_PROB, AT(loss), NULL),
    /* Probability that a frame arrives twice. */
    PLAIN_KEY("dup", KEY_PROB, AT(dup), NULL),
    /* Probability that a frame arrives behind later ones. */
    PLAIN_KEY("reorder", KEY_PROB, AT(reorder), NULL),
    /* Probability that a bit of a frame is flipped. */
    PLAIN_KEY("corrupt", KEY_PROB, AT(corrupt), NULL),
    /* Additional delay of a frame, up to this time. */
    RANGE_KEY("jitter", KEY_TIME, AT(jitter_ps), 0, TIME_MAX, NULL),
    /* Seed of these draws. */
    RANGE_KEY("seed", KEY_UINT, AT(seed), 0, UINT32_MAX, NULL),
    /* No more faults, and rate and latency of the conf. */
    PLAIN_KEY("clear", KEY_BOOL, AT(clear), NULL),
    /* Of frames, as `efficiency` leaves it, from the next frame on. */
    RANGE_KEY("rate", KEY_RATE, AT(rate_bps), LINK_TERMS_MIN_BPS, LINK_TERMS_MAX_BPS, NULL),
    /* From the next frame on: none arrives before one that was sent earlier. */
    RANGE_KEY("latency", KEY_TIME, AT(latency_ps), 0, TIME_MAX, NULL),
};
static const struct key node_keys[] = {
    AT_KEY,
    /* The name of a host or switch. */
    PLAIN_KEY("node", KEY_TEXT, AT(name), NULL),
    /* All its links go down. */
    PLAIN_KEY("down", KEY_BOOL, AT(down), NULL),
    /* They come up. */
    PLAIN_KEY("up", KEY_BOOL, AT(up), NULL),
    /* A switch is down for that time, then without memory of its groups. */
    RANGE_KEY("restart", KEY_TIME, AT(restart_ps), 0, TIME_MAX, NULL),
};
static const struct key host_keys[] = {
    AT_KEY,
    /* The name of a host. */
    PLAIN_KEY("host", KEY_TEXT, AT(name), NULL),
    /* Its processes take and give frames so many times slower than its links (1: as fast). */
    RANGE_KEY("slow", KEY_UINT, AT(slow), 1, SLOW_MAX, NULL),
    /* Links and processes are gone. */
    PLAIN_KEY("die", KEY_BOOL, AT(die), NULL),
    /* With `die`: after this time the other ranks are notified, as by a launcher. Default: they
     * detect it themselves. */
    RANGE_KEY("told", KEY_TIME, AT(told_ps), 0, TIME_MAX, NULL),
};
static const struct key rank_keys[] = {
    AT_KEY,
    /* The number of a rank. */
    RANGE_KEY("rank", KEY_UINT, AT(rank), 0, UINT32_MAX, NULL),
    /* It begins each operation so much later than it starts it (0: at once). */
    RANGE_KEY("late", KEY_TIME, AT(late_ps), 0, TIME_MAX, NULL),
    /* Its process is gone, and its NIC announces it. */
    PLAIN_KEY("die", KEY_BOOL, AT(die), NULL),
    /* With `die`: after this time the other ranks are notified, as by a launcher. Default: they
     * detect it themselves. */
    RANGE_KEY("told", KEY_TIME, AT(told_ps), 0, TIME_MAX, NULL),
};
static const struct key an_keys[] = {
    AT_KEY,
    /* The name of a switch that reduces. */
    PLAIN_KEY("an", KEY_TEXT, AT(name), NULL),
    /* Buffers that new groups may reserve in all. */
    RANGE_KEY("mbufs", KEY_UINT, AT(mbufs), 0, MBUFS_MAX, NULL),
};

/* By enum fault_of. */
static const struct kind {
    const char *name;
    const struct key *keys;
    unsigned n;
} kinds[] = {{"link", link_keys, LEN(link_keys)},
             {"node", node_keys, LEN(node_keys)},
             {"host", host_keys, LEN(host_keys)},
             {"rank", rank_keys, LEN(rank_keys)},
             {"an", an_keys, LEN(an_keys)}};

/* ---- the plan ---- */

struct fault_event fault_event(enum fault_of of, fab_id which, int64_t at_ps)
{
    return (struct fault_event){.at_ps = at_ps,
                                .of = of,
                                .which = which,
                                .loss = FAULT_AS_IS,
                                .dup = FAULT_AS_IS,
                                .reorder = FAULT_AS_IS,
                                .corrupt = FAULT_AS_IS,
                                .jitter_ps = FAULT_AS_IS,
                                .seed = FAULT_AS_IS,
                                .latency_ps = FAULT_AS_IS,
                                .restart_ps = FAULT_AS_IS,
                                .told_ps = FAULT_NOBODY,
                                .late_ps = FAULT_AS_IS,
                                .mbufs = FAULT_AS_IS};
}

int fault_plan_add(struct fault_plan *p, const struct fault_event *e)
{
    struct fault_event *more = realloc(p->e, (p->n + 1) * sizeof(*more));

    if (!more)
        return -ENOMEM;
    p->e = more;
    p->e[p->n++] = *e;
    return 0;
}

/* A stable sort; plans are short. */
void fault_plan_sort(struct fault_plan *p)
{
    for (unsigned i = 1; i < p->n; i++) {
        struct fault_event e = p->e[i];
        unsigned j = i;

        for (; j && p->e[j - 1].at_ps > e.at_ps; j--)
            p->e[j] = p->e[j - 1];
        p->e[j] = e;
    }
}

void fault_plan_free(struct fault_plan *p)
{
    free(p->e);
    *p = (struct fault_plan){0};
}

/* ---- an entry ---- */

struct fault_reader {
    struct build b;
    const struct fabric *f;
    unsigned nranks;
    struct fault_plan *plan;
};

/* The kind of fault that an entry names; -1: a mistake was reported. */
static int kind_of(struct fault_reader *r, config_setting_t *g)
{
    int line = (int)config_setting_source_line(g), kind = -1;

    for (unsigned i = 0; i < LEN(kinds); i++) {
        if (!config_setting_get_member(g, kinds[i].name))
            continue;
        if (kind >= 0) {
            build_error(&r->b, line, "found %s and %s, expected one of them in an entry",
                        kinds[kind].name, kinds[i].name);
            return -1;
        }
        kind = (int)i;
    }
    if (kind < 0)
        build_error(&r->b, line,
                    "found an entry of nothing, expected link, node, host, rank or an in it");
    return kind;
}

static void find_link(struct fault_reader *r, int line, const char *name, struct fault_event *e)
{
    int i = strcmp(name, "all") ? fabric_link_by_name(r->f, name) : (int)FAULT_ALL;
    char hint[FABRIC_HINT];

    if (i == -EINVAL)
        build_error(&r->b, line,
                    "link: found \"%.60s\", which fits several, expected its ports too: "
                    "\"A:0-B:0\"",
                    name);
    else if (i < 0)
        build_error(&r->b, line,
                    "link: found \"%.60s\", expected a link that trib plan -v shows, or \"all\"%s",
                    name, fabric_link_hint(r->f, name, hint, sizeof(hint)));
    else
        e->which = (fab_id)i;
}

static void find_node(struct fault_reader *r, int line, const char *key, const char *name,
                      struct fault_event *e)
{
    const struct fab_node *n = fabric_node(r->f, name);
    char hint[FABRIC_HINT];

    if (!n)
        build_error(
            &r->b, line, "%s: found \"%.60s\", expected the name of a node%s", key, name,
            nearest_hint(fabric_near_node(r->f, name, e->of == FAULT_HOST), hint, sizeof(hint)));
    else if (e->of == FAULT_HOST && n->kind != FAB_HOST)
        build_error(&r->b, line, "host: found the switch %s, expected a host", name);
    else if (e->of == FAULT_AN && (n->kind != FAB_SWITCH || !(n->reduce.on || n->multimem)))
        build_error(&r->b, line, "an: found %s, which reduces nothing, expected a switch that does",
                    name);
    else if (e->of == FAULT_NODE && e->restart_ps >= 0 && n->kind != FAB_SWITCH)
        build_error(&r->b, line, "restart: found the host %s, expected a switch", name);
    else
        e->which = fabric_node_index(r->f, n);
}

/* Refuses entries that contradict themselves or have no effect. */
static const char *senseless(const struct fault_event *e)
{
    bool link = e->loss >= 0 || e->dup >= 0 || e->reorder >= 0 || e->corrupt >= 0 ||
                e->jitter_ps >= 0 || e->seed >= 0 || e->clear || e->rate_bps || e->latency_ps >= 0;

    if (e->down && e->up)
        return "found down and up, expected one of them";
    if (e->restart_ps >= 0 && (e->down || e->up))
        return "found restart with down or up, expected restart alone";
    if (e->told_ps >= 0 && !e->die)
        return "found told without die, expected both: when the others hear of a death";
    switch (e->of) {
    case FAULT_LINK:
        return link || e->down || e->up
                   ? NULL
                   : "found a link alone, expected what happens to it: down, up, loss, dup, "
                     "reorder, corrupt, jitter, seed, rate, latency or clear";
    case FAULT_NODE:
        return e->down || e->up || e->restart_ps >= 0
                   ? NULL
                   : "found a node alone, expected what happens to it: down, up or restart";
    case FAULT_HOST:
        return e->slow || e->die ? NULL
                                 : "found a host alone, expected what happens to it: slow or die";
    case FAULT_RANK:
        return e->die || e->late_ps >= 0
                   ? NULL
                   : "found a rank alone, expected what happens to it: late or die";
    default:
        return e->mbufs >= 0 ? NULL : "found an aggregation node alone, expected mbufs";
    }
}

static bool faults_has(config_setting_t *g, const char *key)
{
    return config_setting_get_member(g, key) != NULL;
}

static void read_entry(struct fault_reader *r, config_setting_t *g)
{
    int line = (int)config_setting_source_line(g), kind;
    unsigned before = r->b.errs->total;
    struct fault_entry in = {.at_ps = FAULT_ALWAYS,
                             .jitter_ps = FAULT_AS_IS,
                             .latency_ps = FAULT_AS_IS,
                             .restart_ps = FAULT_AS_IS,
                             .told_ps = FAULT_NOBODY,
                             .late_ps = FAULT_AS_IS,
                             .loss = FAULT_AS_IS,
                             .dup = FAULT_AS_IS,
                             .reorder = FAULT_AS_IS,
                             .corrupt = FAULT_AS_IS};
    struct fault_event e;
    const char *why;

    if (config_setting_type(g) != CONFIG_TYPE_GROUP) {
        keys_expected(&r->b, g, "a group { at = \"1us\"; link = \"...\"; loss = 0.01; }");
        return;
    }
    kind = kind_of(r, g);
    if (kind < 0)
        return;
    keys_read(&r->b, g, kinds[kind].keys, kinds[kind].n, &in);
    if (r->b.errs->total != before)
        return;
    e = fault_event((enum fault_of)kind, FAB_NONE, in.at_ps);
    e.down = in.down, e.up = in.up, e.clear = in.clear, e.die = in.die;
    e.loss = in.loss, e.dup = in.dup, e.reorder = in.reorder, e.corrupt = in.corrupt;
    e.jitter_ps = in.jitter_ps, e.restart_ps = in.restart_ps, e.told_ps = in.told_ps;
    e.seed = faults_has(g, "seed") ? (int64_t)in.seed : FAULT_AS_IS;
    e.rate_bps = in.rate_bps, e.latency_ps = in.latency_ps;
    e.line = (unsigned)line;
    e.slow = in.slow;
    e.late_ps = in.late_ps;
    e.mbufs = faults_has(g, "mbufs") ? (int64_t)in.mbufs : FAULT_AS_IS;
    why = senseless(&e);
    if (why)
        build_error(&r->b, line, "%s", why);
    else if (e.of == FAULT_LINK)
        find_link(r, line, in.link, &e);
    else if (e.of != FAULT_RANK)
        find_node(r, line, kinds[kind].name, in.name, &e);
    else if (in.rank >= r->nranks)
        build_error(&r->b, line, "rank: found %u, expected one of %u, from 0", in.rank, r->nranks);
    else
        e.which = (fab_id)in.rank;
    if (fault_plan_add(r->plan, &e))
        r->b.no_memory = true;
}

static void read_plan(struct fault_reader *r, config_setting_t *root)
{
    config_setting_t *list = config_setting_get_member(root, "faults");

    for (int i = 0; i < config_setting_length(root); i++) {
        config_setting_t *s = config_setting_get_elem(root, (unsigned)i);

        if (s != list)
            build_error(&r->b, (int)config_setting_source_line(s),
                        "found unknown key \"%.60s\", expected faults = ( ... ) alone",
                        config_setting_name(s));
    }
    if (!list)
        build_error(&r->b, 0, "found no faults, expected faults = ( { ... }, ... )");
    else if (config_setting_type(list) != CONFIG_TYPE_LIST)
        keys_expected(&r->b, list, "a list ( { ... }, ... )");
    else
        for (int i = 0; i < config_setting_length(list); i++)
            read_entry(r, config_setting_get_elem(list, (unsigned)i));
}

/* Changes the terms of a link by an event. False: the fabric cannot have them, which was reported. */
static bool change_terms(struct fault_reader *r, unsigned link, const struct fault_event *e,
                         struct link_terms *t)
{
    char why[LINK_TERMS_WHY];

    if (e->clear)
        *t = link_terms_of_conf(r->f, link);
    if (!e->rate_bps && e->latency_ps < 0)
        return true;
    t->rate_bps = e->rate_bps ? e->rate_bps : t->rate_bps;
    t->latency_ps = e->latency_ps >= 0 ? e->latency_ps : t->latency_ps;
    if (!link_terms_check(r->f, link, t, why, sizeof(why)))
        return true;
    build_error(&r->b, (int)e->line, "%s (%s)", why, r->f->links[link].name);
    return false;
}

/* Checks rates and latencies by time: a later entry keeps what an earlier one of its link has set. */
static void check_terms(struct fault_reader *r)
{
    struct link_terms *t = calloc(r->f->n_links + 1u, sizeof(*t));

    if (!t) {
        r->b.no_memory = true;
        return;
    }
    for (unsigned i = 0; i < r->f->n_links; i++)
        t[i] = link_terms_of_conf(r->f, i);
    for (unsigned i = 0; i < r->plan->n; i++) {
        const struct fault_event *e = &r->plan->e[i];
        bool all = e->which == FAULT_ALL;
        unsigned first = all ? 0 : e->which, end = all ? r->f->n_links : e->which + 1u;

        for (unsigned k = first; e->of == FAULT_LINK && k < end; k++)
            if (!(all && link_terms_fixed(r->f, k)) && !change_terms(r, k, e, &t[k]))
                break;
    }
    free(t);
}

int fault_plan_load_string(struct fault_plan *p, const char *text, const char *path,
                           const struct fabric *f, unsigned nranks, struct fab_errors *errs)
{
    struct fault_reader r = {
        .b = {.errs = errs, .path = path}, .f = f, .nranks = nranks, .plan = p};
    config_t c;

    *p = (struct fault_plan){0};
    errs->n = errs->total = 0;
    if (conf_parse(&r.b, text, &c)) {
        read_plan(&r, config_root_setting(&c));
        config_destroy(&c);
    }
    fault_plan_sort(p);
    if (!errs->total)
        check_terms(&r);
    if (r.b.no_memory)
        build_error(&r.b, 0, "found too little memory, expected enough for this plan");
    fab_errors_sort(errs);
    if (build_failed(&r.b)) {
        fault_plan_free(p);
        return -EINVAL;
    }
    return 0;
}

int fault_plan_load(struct fault_plan *p, const char *path, const struct fabric *f, unsigned nranks,
                    struct fab_errors *errs)
{
    char *text;
    int rc;

    *p = (struct fault_plan){0};
    errs->n = errs->total = 0;
    text = conf_text(path, "fault plan", errs);
    rc = text ? fault_plan_load_string(p, text, path, f, nranks, errs) : -EINVAL;
    free(text);
    return rc;
}
