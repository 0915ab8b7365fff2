/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Costs of transfers in addition to the time on links:
 *
 *   costs = { gpu = "5us"; hca = "100ns"; switch = "150ns";
 *             nvlink = { launch = "20us"; step = "3.4us"; ll = { step = "0.6us"; rate = "140GB/s"; };
 *                        ll128 = { step = "1.9us"; rate = "330GB/s"; }; };
 *             multimem = { launch = "70us"; load = 0.85; store = 0.85; };
 *             network = { launch = "30us"; step = "14us"; };
 *             aggregate = { time = "780ns"; bytes = 256; }; };
 *
 * Without it only links take time, and results match the bandwidth terms of the formulas. Real
 * programs see a transfer's end late (a kernel polls, a proxy thread hands over), an HCA takes time
 * for each work request, and a switch for each frame. A link's `efficiency` is a cost too, but a
 * property of the link (conf_links.c).
 */
#include "fabric/build.h"

#define LEN(a)    (sizeof(a) / sizeof((a)[0]))
#define MAX_COST  1000000000000ull /* 1 s */
#define MIN_RATE  1000000ull       /* those of links (conf_links.c) */
#define MAX_RATE  100000000000000ull
#define MIN_SHARE 0.01
#define MAX_PIECE (1u << 20)
#define MAX_UNTIL (1ull << 40)

/* Reads a group of which no key has a default. */
static void need_all(struct build *b, config_setting_t *s, const struct key *keys, unsigned n,
                     const char *group)
{
    for (unsigned i = 0; i < n; i++)
        if (!config_setting_get_member(s, keys[i].name))
            build_error(b, (int)config_setting_source_line(s),
                        "%s: found no %s, expected a group %s with both", config_setting_name(s),
                        keys[i].name, group);
}

static void conf_short(struct build *b, config_setting_t *s, struct fab_short *p)
{
    static const struct key keys[] = {
        /* Time that replaces the path's `step`. Needed. */
        RANGE_KEY("step", KEY_TIME, offsetof(struct fab_short, step_ps), 0, MAX_COST, NULL),
        /* What the protocol sustains over all of the GPU's ports on the path, of which each port has
         * its part. Needed. */
        RANGE_KEY("rate", KEY_RATE, offsetof(struct fab_short, rate_bps), MIN_RATE, MAX_RATE, NULL),
    };

    if (!s)
        return;
    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { step; rate; } of a protocol for short messages");
        return;
    }
    keys_read(b, s, keys, LEN(keys), p);
    need_all(b, s, keys, LEN(keys), "{ step; rate; }");
}

static void conf_path(struct build *b, config_setting_t *s, struct fab_path_costs *p)
{
    static const struct key keys[] = {
        /* Time before an operation's first step on a rank: the longest of the paths that the rank's
         * schedule uses, once; simulations only. */
        RANGE_KEY("launch", KEY_TIME, offsetof(struct fab_path_costs, launch_ps), 0, MAX_COST,
                  "0ns"),
        /* Like `gpu`, and added to it, for messages that arrive by this path. */
        RANGE_KEY("step", KEY_TIME, offsetof(struct fab_path_costs, step_ps), 0, MAX_COST, "0ns"),
        /* Group `{ step; rate; }` of NCCL's protocol LL for short messages. */
        OWN_KEY("ll"),
        /* The same of LL128. */
        OWN_KEY("ll128"),
    };

    keys_initial(keys, LEN(keys), p);
    if (!s)
        return;
    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { launch; step; ll; ll128; } of a path's costs");
        return;
    }
    keys_read(b, s, keys, LEN(keys), p);
    conf_short(b, config_setting_get_member(s, "ll"), &p->ll);
    conf_short(b, config_setting_get_member(s, "ll128"), &p->ll128);
    if ((p->ll.rate_bps || p->ll128.rate_bps) && !p->step_ps)
        build_error(b, (int)config_setting_source_line(s),
                    "%s: found ll or ll128 without step, expected the step that they shorten",
                    config_setting_name(s));
}

/* Turns a share of the link's rate into its inverse. */
static void conf_share(struct build *b, config_setting_t *s, const char *name, double share,
                       uint32_t *stretch)
{
    config_setting_t *at = config_setting_get_member(s, name);

    if (!at || share >= 1)
        return;
    if (share < MIN_SHARE)
        build_error(b, (int)config_setting_source_line(at),
                    "%s: found %g, expected a share of the link's rate from %g to 1", name, share,
                    MIN_SHARE);
    else
        *stretch = (uint32_t)(FAB_STRETCH_ONE / share + 0.5);
}

static void conf_multimem(struct build *b, config_setting_t *s, struct fab_costs *c)
{
    struct shares {
        int64_t launch_ps;
        double load, store;
    } m = {0};
    static const struct key keys[] = {
        /* As of a path. */
        RANGE_KEY("launch", KEY_TIME, offsetof(struct shares, launch_ps), 0, MAX_COST, "0ns"),
        /* Share of a link's rate that data of multimem loads (members' answers and sums) sustain
         * between GPU and NVSwitch, in both directions, upon the link's `efficiency`; at least 0.01. */
        PLAIN_KEY("load", KEY_SHARE, offsetof(struct shares, load), "1"),
        /* The same of multimem stores. */
        PLAIN_KEY("store", KEY_SHARE, offsetof(struct shares, store), "1"),
    };

    keys_initial(keys, LEN(keys), &m);
    if (!s)
        return;
    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { launch; load; store; } of multimem's costs");
        return;
    }
    keys_read(b, s, keys, LEN(keys), &m);
    c->mm_launch_ps = m.launch_ps;
    conf_share(b, s, "load", m.load, &c->mm_load);
    conf_share(b, s, "store", m.store, &c->mm_store);
}

static void conf_aggregate(struct build *b, config_setting_t *s, struct fab_costs *c)
{
    static const struct key keys[] = {
        /* What an aggregation node takes to reduce a piece of `bytes`, those of all groups one after
         * another, and for a packet without elements one piece. Needed. */
        RANGE_KEY("time", KEY_TIME, offsetof(struct fab_costs, agg_ps), 0, MAX_COST, NULL),
        /* Size of that piece. Needed. */
        RANGE_KEY("bytes", KEY_UINT, offsetof(struct fab_costs, agg_bytes), 1, MAX_PIECE, NULL),
        /* The longest vector for which that was measured; a row of a longer one says that it is
         * extrapolated. */
        RANGE_KEY("until", KEY_SIZE, offsetof(struct fab_costs, agg_until_bytes), 1, MAX_UNTIL,
                  NULL),
    };

    if (!s)
        return;
    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { time; bytes; } of an aggregation node's reductions");
        return;
    }
    keys_read(b, s, keys, LEN(keys), c);
    need_all(b, s, keys, 2, "{ time; bytes; }");
}

/* A group; NULL if it is missing. */
static config_setting_t *group_of(config_setting_t *s, const char *name)
{
    return s ? config_setting_get_member(s, name) : NULL;
}

void conf_costs(struct build *b, config_setting_t *s)
{
    static const struct key keys[] = {
        /* Time from a message's arrival until the program sees it (not for data that it READs
         * itself, nor for errors); queues are deeper by as much. */
        RANGE_KEY("gpu", KEY_TIME, offsetof(struct fab_costs, gpu_ps), 0, MAX_COST, "0ns"),
        /* Time of a port for each message: the message waits that long, and the port begins one at a
         * time. */
        RANGE_KEY("hca", KEY_TIME, offsetof(struct fab_costs, hca_ps), 0, MAX_COST, "0ns"),
        /* Time of each switch for each frame, beyond its time on links. */
        RANGE_KEY("switch", KEY_TIME, offsetof(struct fab_costs, switch_ps), 0, MAX_COST, "0ns"),
        /* Group of the costs of plain messages over a GPU node's NVLink network. */
        OWN_KEY("nvlink"),
        /* Group of the costs of NVSwitch multimem. */
        OWN_KEY("multimem"),
        /* The same as `nvlink` for the scale-out network, of CPU hosts too. */
        OWN_KEY("network"),
        /* Group `{ time = "741ns"; bytes = 256; }` of what aggregation nodes take. Default: no time. */
        OWN_KEY("aggregate"),
    };
    struct fab_costs *c = &b->f->costs;

    if (s && !config_setting_is_group(s)) {
        keys_expected(b, s, "a group { gpu; hca; switch; nvlink; multimem; network; aggregate; }");
        return;
    }
    keys_initial(keys, LEN(keys), c);
    if (s)
        keys_read(b, s, keys, LEN(keys), c);
    conf_path(b, group_of(s, "nvlink"), &c->nvlink);
    conf_multimem(b, group_of(s, "multimem"), c);
    conf_path(b, group_of(s, "network"), &c->network);
    conf_aggregate(b, group_of(s, "aggregate"), c);
}
