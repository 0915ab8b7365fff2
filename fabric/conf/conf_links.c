/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The links of a file, and their defaults:
 *
 *   link_defaults = { latency = "300ns"; };
 *   links = ( { a = "leaf0"; b = "spine0:3"; rate = "400Gb/s"; cables = 2; },
 *             { a = ( "h0", "h1" ); b = "leaf0"; rate = "400Gb/s"; },      every a with every b
 *             { a = "g0"; b = "leaf0"; port = "vhost:g0.sock"; rate = "10Gb/s"; },   g0 is outside
 *             { a = "leaf0"; port = "net_af_packet0,iface=eth1"; rate = "10Gb/s"; },
 *             { of = "leaf0-spine1"; rate = "100Gb/s"; } );     changes a link that is there, a template's too
 */
#include "fabric/build.h"
#include "fabric/link_terms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

#define MIN_RATE       LINK_TERMS_MIN_BPS
#define MAX_RATE       LINK_TERMS_MAX_BPS
#define MAX_TIME       1000000000000ull /* 1 s */
#define MIN_BUFFER     9216ull          /* two frames of 4 KiB */
#define MAX_BUFFER     (16ull << 30)
#define DEFAULT_BUFFER (1ull << 20)
#define DEFAULT_PKTS   2048u

#define P(field) offsetof(struct link_props, field)
static const struct key link_keys[] = {
    /* As `"400Gb/s"` or `"50GB/s"`. Needed, here or in `link_defaults`. */
    RANGE_KEY("rate", KEY_RATE, P(rate_bps), MIN_RATE, MAX_RATE, NULL),
    /* As `"300ns"` or `"1.5us"`. Needed, here or in `link_defaults`. */
    RANGE_KEY("latency", KEY_TIME, P(latency_ps), 0, MAX_TIME, NULL),
    /* Of each direction's queue, per class. Default: 1 MiB, or four round trips if that is more. */
    RANGE_KEY("buffer", KEY_SIZE, P(buffer_bytes), MIN_BUFFER, MAX_BUFFER, NULL),
    /* The same in frames. Default: 2048, or the buffer in frames of one MTU if that is more. */
    RANGE_KEY("buffer_frames", KEY_UINT, P(buffer_pkts), 2, 1 << 24, NULL),
    /* Occupancy of a queue from which its frames are marked (ECN). Default: off. */
    RANGE_KEY("ecn", KEY_SIZE, P(ecn_bytes), 1, MAX_BUFFER, NULL),
    /* Random marking: from `ecn` on with a probability that grows to `ecn_prob` here; above it every
     * frame is marked. Default: `ecn`. */
    RANGE_KEY("ecn_max", KEY_SIZE, P(ecn_max_bytes), 1, MAX_BUFFER, NULL),
    /* The probability of that at `ecn_max`. Default: 1.0. */
    PLAIN_KEY("ecn_prob", KEY_PROB, P(ecn_prob), NULL),
    /* Whether PFC keeps the lossless class lossless. */
    PLAIN_KEY("pfc", KEY_BOOL, P(pfc), "true"),
    /* Probability that a frame is lost. */
    PLAIN_KEY("loss", KEY_PROB, P(loss), "0"),
    /* Probability that a frame arrives twice. */
    PLAIN_KEY("dup", KEY_PROB, P(dup), "0"),
    /* Probability that a frame arrives behind later ones. */
    PLAIN_KEY("reorder", KEY_PROB, P(reorder), "0"),
    /* Probability that a bit of a frame is flipped. */
    PLAIN_KEY("corrupt", KEY_PROB, P(corrupt), "0"),
    /* Additional delay of a frame, up to this time. */
    RANGE_KEY("jitter", KEY_TIME, P(jitter_ps), 0, MAX_TIME, "0ns"),
    /* Share of the rate that the link layer leaves for frames; above 0. */
    PLAIN_KEY("efficiency", KEY_SHARE, P(efficiency), "1"),
    /* Parallel links between the same two nodes. */
    RANGE_KEY("cables", KEY_UINT, P(cables), 1, FAB_MAX_PORTS, "1"),
};

/* Replaces refused properties by placeholders, so that no further mistake is reported. */
void link_props_placeholder(struct link_props *p)
{
    if (!p->rate_bps)
        p->rate_bps = MIN_RATE;
    if (p->latency_ps < 0)
        p->latency_ps = 0;
}

void link_props_init(struct link_props *p)
{
    *p = (struct link_props){.latency_ps = -1, .ecn_prob = -1};
    keys_initial(link_keys, LEN(link_keys), p);
}

/* Checks properties that depend on each other. */
static void check_props(struct build *b, int line, const struct link_props *p)
{
    if (p->efficiency <= 0)
        build_error(b, line, "efficiency: found 0, expected a share of the rate above 0, up to 1");
    if (p->ecn_bytes && p->buffer_bytes && p->ecn_bytes > p->buffer_bytes)
        build_error(b, line,
                    "ecn: found a threshold above the buffer, expected at most the buffer's size");
    if (!p->ecn_bytes && (p->ecn_max_bytes || p->ecn_prob >= 0))
        build_error(b, line, "%s: found it without ecn, expected ecn = \"64KiB\" or the like too",
                    p->ecn_max_bytes ? "ecn_max" : "ecn_prob");
    if (p->ecn_max_bytes && p->ecn_max_bytes < p->ecn_bytes)
        build_error(b, line, "ecn_max: found a threshold below ecn, expected at least that");
}

void conf_link_props(struct build *b, config_setting_t *s, struct link_props *p)
{
    if (!config_setting_is_group(s)) {
        keys_expected(b, s, "a group { rate; latency; ... } that describes links");
        return;
    }
    keys_read(b, s, link_keys, LEN(link_keys), p);
    check_props(b, (int)config_setting_source_line(s), p);
}

static struct draft_link *add_draft(struct build *b, int line)
{
    if (b->n_links == FAB_MAX_LINKS) {
        build_over(b, &b->over_links, 1, line);
        return NULL;
    }
    if (b->n_links == b->cap_links) {
        unsigned cap = b->cap_links ? 2 * b->cap_links : 64;
        struct draft_link *links = realloc(b->links, cap * sizeof(*links));

        if (!links) {
            b->no_memory = true;
            return NULL;
        }
        b->links = links;
        b->cap_links = cap;
    }
    return &b->links[b->n_links++];
}

/*
 * Sets properties that the file leaves open. A buffer must hold the bytes in flight until a pause
 * reaches the sender, with a margin: four times rate x round trip, and 1 MiB at least.
 */
static void complete_props(const struct build *b, struct link_props *p)
{
    if (!p->buffer_bytes) {
        unsigned __int128 trip =
            (unsigned __int128)p->rate_bps * (uint64_t)p->latency_ps / (8 * 1000000000000ull);

        p->buffer_bytes = trip * 8 < DEFAULT_BUFFER ? DEFAULT_BUFFER
                          : trip * 8 > MAX_BUFFER   ? MAX_BUFFER
                                                    : (uint64_t)trip * 8;
        if (p->buffer_bytes < p->ecn_bytes)
            p->buffer_bytes = p->ecn_bytes;
    }
    if (!p->ecn_max_bytes)
        p->ecn_max_bytes = p->ecn_bytes;
    if (p->ecn_prob < 0)
        p->ecn_prob = 1;
    if (!p->buffer_pkts) {
        uint64_t pkts = p->buffer_bytes / (b->f->mtu ? b->f->mtu : 4096);

        p->buffer_pkts = pkts > DEFAULT_PKTS ? (uint32_t)pkts : DEFAULT_PKTS;
    }
}

/* Reduces the rate by the link layer's own headers: frames see a slower link. */
static void apply_efficiency(struct link_props *p)
{
    if (p->efficiency < 1)
        p->rate_bps = (uint64_t)((double)p->rate_bps * p->efficiency + 0.5);
    if (p->rate_bps < MIN_RATE)
        p->rate_bps = MIN_RATE;
}

/* Requires rate and latency. what: "a link", or the name of its group. */
static void require(struct build *b, int line, const char *what, const struct link_props *p)
{
    if (!p->rate_bps)
        build_error(b, line,
                    "found %s without rate, expected rate = \"400Gb/s\" or the like, here or in "
                    "link_defaults",
                    what);
    if (p->latency_ps < 0)
        build_error(b, line,
                    "found %s without latency, expected latency = \"300ns\" or the like, here or "
                    "in link_defaults",
                    what);
}

static int add_cables(struct build *b, struct draft_link proto)
{
    for (unsigned i = 0; i < proto.p.cables; i++) {
        struct draft_link *l = add_draft(b, proto.line);

        if (!l)
            return -ENOSPC;
        *l = proto;
    }
    return 0;
}

int build_add_link(struct build *b, fab_id a, fab_id z, const struct link_props *p, int line)
{
    struct draft_link l = {
        .a = a, .b = z, .a_port = PORT_AUTO, .b_port = PORT_AUTO, .line = line, .p = *p};

    return add_cables(b, l);
}

struct conf_end {
    fab_id node;
    int port;
};

/* Reads an end of a link: "leaf0" or "leaf0:3". */
static int read_end(struct build *b, const config_setting_t *s, const char *key, struct conf_end *e)
{
    const char *text = config_setting_get_string(s), *colon = text ? strchr(text, ':') : NULL;
    int node;
    unsigned long port = 0;
    char *rest = NULL;

    if (colon && colon[1] >= '0' && colon[1] <= '9')
        port = strtoul(colon + 1, &rest, 10);
    if (!text || (colon && (!rest || *rest || port >= FAB_MAX_PORTS))) {
        keys_expected(
            b, s, "a node as \"leaf0\", with a port below 1024 as \"leaf0:3\" where it matters");
        return -EINVAL;
    }
    node = build_find_node(b, text, colon ? (size_t)(colon - text) : strlen(text));
    if (node < 0) {
        if (!b->nodes_unknown)
            build_no_node(b, (int)config_setting_source_line(s), key, text);
        return -ENOENT;
    }
    e->node = (fab_id)node;
    e->port = colon ? (int)port : PORT_AUTO;
    return 0;
}

static unsigned count_ends(const config_setting_t *s)
{
    return config_setting_is_aggregate(s) ? (unsigned)config_setting_length(s) : 1;
}

/* Reads the ends of one side. *out is malloced and lists those without mistakes. */
static unsigned read_ends(struct build *b, config_setting_t *s, const char *key,
                          struct conf_end **out)
{
    unsigned n = count_ends(s), good = 0;
    struct conf_end *ends;

    *out = NULL;
    if (config_setting_is_group(s) || !n) {
        keys_expected(b, s, "the name of a node, or a list ( ) of names");
        b->graph_broken = true;
        return 0;
    }
    ends = calloc(n, sizeof(*ends));
    if (!ends) {
        b->no_memory = true;
        return 0;
    }
    for (unsigned i = 0; i < n; i++) {
        const config_setting_t *e =
            config_setting_is_aggregate(s) ? config_setting_get_elem(s, i) : s;

        if (!read_end(b, e, key, &ends[good]))
            good++;
    }
    if (good < n)
        b->graph_broken = true;
    *out = ends;
    return good;
}

struct link_keys {
    struct link_props p;
    char port[128];
};

/* What is wrong with a port to the outside: behind it is one host (or another device), never a switch. */
static const char *port_misplaced(const struct fabric *f, const struct conf_end *a,
                                  const struct conf_end *z, const struct link_keys *k)
{
    if (!k->port[0])
        return NULL;
    if (!z)
        return f->nodes[a->node].kind == FAB_HOST ? "a host alone, expected it at a switch" : NULL;
    if (f->nodes[a->node].kind == f->nodes[z->node].kind)
        return "two nodes of one kind, expected it between a host that is outside and a switch";
    return NULL;
}

static void conf_links_join(struct build *b, const struct conf_end *a, const struct conf_end *z,
                            int line, const struct link_keys *k)
{
    struct draft_link l = {.a = a->node,
                           .b = z ? z->node : FAB_NONE,
                           .a_port = a->port,
                           .b_port = z ? z->port : PORT_AUTO,
                           .line = line,
                           .p = k->p};
    const char *wrong = port_misplaced(b->f, a, z, k);

    if (z && a->node == z->node) {
        build_error(b, line, "found a link from \"%s\" to itself, expected two different nodes",
                    b->f->nodes[a->node].name);
        b->graph_broken = true;
        return;
    }
    if (k->p.cables > 1 && (!z || k->port[0] || a->port != PORT_AUTO || z->port != PORT_AUTO)) {
        build_error(
            b, line,
            "cables: found %u at a link that names its ports or leads to the outside, expected 1",
            k->p.cables);
        b->graph_broken = true;
        return;
    }
    if (wrong) {
        build_error(b, line, "port: found it at %s", wrong);
        b->graph_broken = true;
        return;
    }
    snprintf(l.external, sizeof(l.external), "%s", k->port);
    add_cables(b, l);
}

/* Checks the ends: a link has one end in the fabric; the other is a node, a port to the outside, or both. */
static int check_ends(struct build *b, int line, const config_setting_t *a,
                      const config_setting_t *z, const config_setting_t *port)
{
    const char *text = port ? config_setting_get_string(port) : NULL;
    unsigned before = b->errs->total;

    if (!a)
        build_error(b, line, "found a link without a, expected a = \"leaf0\" or the like");
    if (!z && !port)
        build_error(
            b, line,
            "found a link without b, expected b = \"leaf0\" or the like, or port = \"...\"");
    if (text && (!*text || !strcmp(text, "vhost:")))
        build_error(b, line,
                    "port: found \"%s\", expected \"vhost:PATH\", a DPDK device as "
                    "\"net_af_packet0,iface=eth1\", or a PCI address",
                    text);
    if (port && ((a && config_setting_is_aggregate(a)) || (z && config_setting_is_aggregate(z))))
        build_error(b, line, "port: found a list of nodes at it, expected one name");
    return b->errs->total > before ? -EINVAL : 0;
}

/* ---- changes of existing links, by their nodes: "leaf0-spine1" ---- */

/* Splits text at each of its dashes, since names may have some, until both parts are nodes. */
static bool find_pair(const struct build *b, const char *text, fab_id *a, fab_id *z)
{
    for (const char *dash = strchr(text, '-'); dash; dash = strchr(dash + 1, '-')) {
        int from = build_find_node(b, text, (size_t)(dash - text));
        int to = build_find_node(b, dash + 1, strlen(dash + 1));

        if (from >= 0 && to >= 0) {
            *a = (fab_id)from;
            *z = (fab_id)to;
            return true;
        }
    }
    return false;
}

static bool joins(const struct draft_link *l, fab_id a, fab_id z)
{
    return (l->a == a && l->b == z) || (l->a == z && l->b == a);
}

/* Copies the keys of a link and appends an entry's own; returns their number. */
static unsigned with_link_keys(struct key *keys, const struct key *own, unsigned n)
{
    memcpy(keys, link_keys, sizeof(link_keys));
    memcpy(keys + LEN(link_keys), own, n * sizeof(*own));
    return LEN(link_keys) + n;
}

/* Changes all cables between two nodes as the keys of g say. */
static void change_links(struct build *b, config_setting_t *g, const config_setting_t *of)
{
    static const struct key own[] = {
        /* Two nodes, as `"leaf0-spine1"`: what is there between them changes. Needed. */
        OWN_KEY("of"),
    };
    struct key keys[LEN(link_keys) + LEN(own)];
    const char *text = config_setting_get_string(of);
    unsigned n = 0, before = b->errs->total;
    int line = (int)config_setting_source_line(g);
    fab_id a, z;

    if (!text) {
        keys_expected(b, of, "the nodes of a link as \"leaf0-spine1\"");
        return;
    }
    if (config_setting_length(g) < 2) {
        build_error(b, line, "of: found nothing with it, expected rate, latency or another key");
        return;
    }
    if (config_setting_get_member(g, "cables")) {
        build_error(b, line, "cables: found it with of, expected it where the link is made");
        return;
    }
    if (!find_pair(b, text, &a, &z)) {
        if (!b->nodes_unknown)
            build_error(b, line, "of: found \"%s\", expected two nodes as \"leaf0-spine1\"", text);
        return;
    }
    for (unsigned i = 0; i < b->n_links && b->errs->total == before; i++) {
        struct draft_link *l = &b->links[i];

        if (!joins(l, a, z))
            continue;
        n++;
        if (l->changed_line) {
            build_error(b, line, "of: found \"%s\" a second time, expected its keys at line %d",
                        text, l->changed_line);
            return;
        }
        l->changed_line = line;
        keys_read(b, g, keys, with_link_keys(keys, own, LEN(own)), &l->p);
        check_props(b, line, &l->p);
    }
    if (!n && !b->graph_broken)
        build_error(b, line,
                    "of: found \"%s\", which no link joins, expected one above, or of the "
                    "template",
                    text);
}

void conf_links_complete(struct build *b)
{
    for (unsigned i = 0; i < b->n_links; i++) {
        apply_efficiency(&b->links[i].p);
        complete_props(b, &b->links[i].p);
    }
}

static void read_link(struct build *b, config_setting_t *g)
{
    static const struct key own[] = {
        /* The node at one end, as `"leaf0"`, with a port as `"leaf0:3"` where it matters, or a list of
         * nodes: each of them with each of `b`. Needed. */
        OWN_KEY("a"),
        /* The same at the other end. Default: none, with a `port` to an unknown network. */
        OWN_KEY("b"),
        /* The device by which the link leaves the fabric. Default: none. */
        PLAIN_KEY("port", KEY_TEXT, offsetof(struct link_keys, port), NULL),
    };
    struct key keys[LEN(link_keys) + LEN(own)];
    struct link_keys k = {.p = b->link_defaults};
    config_setting_t *as, *bs, *port;
    struct conf_end *a = NULL, *z = NULL;
    unsigned na, nz = 0, before = b->errs->total;
    int line = (int)config_setting_source_line(g);

    if (!config_setting_is_group(g)) {
        keys_expected(b, g, "a group { a; b; rate; latency; } that describes a link");
        b->graph_broken = true;
        return;
    }
    if (config_setting_get_member(g, "of")) {
        change_links(b, g, config_setting_get_member(g, "of"));
        return;
    }
    keys_read(b, g, keys, with_link_keys(keys, own, LEN(own)), &k);
    check_props(b, line, &k.p);
    if (b->errs->total == before)
        require(b, line, "a link", &k.p);
    link_props_placeholder(&k.p);
    as = config_setting_get_member(g, "a");
    bs = config_setting_get_member(g, "b");
    port = config_setting_get_member(g, "port");
    if (check_ends(b, line, as, bs, port)) {
        b->graph_broken = true;
        return;
    }
    na = read_ends(b, as, "a", &a);
    if (bs)
        nz = read_ends(b, bs, "b", &z);
    for (unsigned i = 0; i < na; i++)
        for (unsigned j = 0; j < (bs ? nz : 1) && !b->over_links; j++)
            conf_links_join(b, &a[i], bs ? &z[j] : NULL, line, &k);
    free(a);
    free(z);
}

void conf_links(struct build *b, config_setting_t *s)
{
    if (!config_setting_is_list(s)) {
        keys_expected(b, s, "a list ( { a; b; }, ... ) of links");
        b->graph_broken = true;
        return;
    }
    for (int i = 0; i < config_setting_length(s); i++)
        read_link(b, config_setting_get_elem(s, (unsigned)i));
}

void conf_link_group(struct build *b, config_setting_t *parent, const char *name,
                     struct link_props *p)
{
    config_setting_t *s = config_setting_get_member(parent, name);
    unsigned before = b->errs->total;

    *p = b->link_defaults;
    if (s)
        conf_link_props(b, s, p);
    if (b->errs->total == before)
        require(b, (int)config_setting_source_line(s ? s : parent), name, p);
    link_props_placeholder(p);
}
