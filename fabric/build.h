/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric while it is being built; private to this room. fabric_load() runs the stages in this
 * order:
 *
 *   conf.c      read the file: settings, templates, nodes, links, machines, processes
 *   ports.c     links to ports
 *   topology.c  tiers, flooding tree, ordinals of hosts
 *   domain.c    GPU nodes
 *   address.c   addresses, destinations
 *   routes.c    networks, equal-cost next hops
 *   reach.c     which switches reach which hosts
 *   tree.c      aggregation trees
 *   procs.c     which process runs which node
 *   transport.c round trip and window
 *
 * Every stage reports all mistakes that are certain and continues. Stages that need the whole graph run
 * only if every node and link was understood. A placeholder replaces a refused node or link, so that one
 * mistake gives one error.
 */
#ifndef TRIB_FABRIC_BUILD_H
#define TRIB_FABRIC_BUILD_H

#include "base/arena.h"
#include "fabric/fabric.h"

#include <libconfig.h>
#include <stddef.h>

#define PORT_AUTO -1

/* Properties of a link that a file can set. Unset: rate_bps 0, latency_ps -1, buffer_bytes 0,
 * buffer_pkts 0. */
struct link_props {
    uint64_t rate_bps, buffer_bytes, ecn_bytes, ecn_max_bytes;
    int64_t latency_ps, jitter_ps;
    uint32_t buffer_pkts, cables, lanes;
    bool pfc;
    double loss, dup, reorder, corrupt, ecn_prob; /* ecn_prob < 0: unset */
    double efficiency;                            /* share of the rate left for frames */
};

/* A link before its ports are numbered. b FAB_NONE: a port to the outside, behind which the fabric has no
 * node. */
struct draft_link {
    fab_id a, b;
    int a_port, b_port;     /* PORT_AUTO: the lowest free port */
    int line, changed_line; /* changed_line: its `of` entry; 0: none */
    struct link_props p;
    char external[128];
};

struct build {
    struct fabric *f;
    struct fab_errors *errs;
    const char *path;
    struct draft_link *links;
    unsigned n_links, cap_links, cap_nodes;
    int *node_line;       /* [n_nodes] */
    fab_id *name_slot;    /* open hash of node names: index + 1; conf_nodes.c */
    uint32_t *want_ports; /* [n_nodes] a node's `ports`; 0: as many as links need */
    struct link_props link_defaults;
    struct fab_reduce reduce_default;
    bool cut_through_default; /* of switches: the file's `forwarding` */
    struct reach *reach;      /* routing/reach.h */
    enum { PROCS_ONE, PROCS_PER_NODE, PROCS_LISTED } proc_mode;
    int proc_line; /* of the setting `processes` */
    uint64_t over_hosts, over_nodes,
        over_links; /* beyond the limits; the first one is at over_line */
    int over_line;
    bool has_external;  /* some port leads to the outside */
    bool nodes_unknown; /* some nodes were refused: unknown names are not reported */
    bool graph_broken;  /* some node or link was refused: checks of the whole graph are skipped */
    bool no_memory;
};

/* ---- conf.c: files ---- */
/* Reads a whole file as a string, malloced; NULL with an error noted. what: its kind, "conf file". */
char *conf_text(const char *path, const char *what, struct fab_errors *errs);
/* Parses the syntax only. True: the caller destroys *c; false: mistakes were reported. */
bool conf_syntax(struct build *b, const char *text, config_t *c);
/* The same, and refuses texts with control characters. */
bool conf_parse(struct build *b, const char *text, config_t *c);

/* ---- errors.c ---- */
void build_error(struct build *b, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool build_failed(const struct build *b);
void fab_errors_sort(struct fab_errors *errs);

/* Zeroed memory that lives as long as the fabric; NULL and b->no_memory when out of memory. */
static inline void *build_alloc(struct build *b, size_t n, size_t size)
{
    void *p = arena_alloc(&b->f->arena, n, size);

    b->no_memory |= !p;
    return p;
}

/* ---- keys.c: groups by a table of allowed keys ---- */
enum key_type {
    KEY_RATE,   /* uint64_t, bits per second */
    KEY_TIME,   /* int64_t, ps */
    KEY_SIZE,   /* uint64_t, bytes */
    KEY_UINT,   /* uint32_t */
    KEY_BOOL,   /* bool */
    KEY_PROB,   /* double, 0..1 */
    KEY_SHARE,  /* double, 0..1, but not a probability */
    KEY_NAME,   /* char[FAB_NAME] */
    KEY_TEXT,   /* char[128] */
    KEY_CHOICE, /* uint32_t, index into the allowed names */
    KEY_OWN     /* read by the caller */
};
/* A row of a table of keys. The tables of documents come from the rows (scripts/docs_keys.py): the
 * comment before a row is its meaning there. A default that the reader computes is the comment's last
 * sentence, "Default: <how>.". */
struct key {
    const char *name;
    enum key_type type;
    size_t offset;            /* into the struct that is filled in */
    uint64_t lo, hi;          /* accepted range, in the unit of the type; both 0: any */
    const char *initial;      /* the default, as in a file but without quotes; NULL: none */
    const char *const *names; /* of a KEY_CHOICE; NULL ends them */
};
/* clang-format off */
#define OWN_KEY(name_)                {.name = name_, .type = KEY_OWN}
/* With a default that the caller reads by keys_initial_of(). */
#define OWN_KEY_FROM(name_, initial_) {.name = name_, .type = KEY_OWN, .initial = initial_}
/* For types without a range. */
#define PLAIN_KEY(name_, type_, offset_, initial_)                                                 \
    {.name = name_, .type = type_, .offset = offset_, .initial = initial_}
#define RANGE_KEY(name_, type_, offset_, lo_, hi_, initial_)                                       \
    {.name = name_, .type = type_, .offset = offset_, .lo = lo_, .hi = hi_, .initial = initial_}
#define CHOICE_KEY(name_, offset_, names_, initial_)                                               \
    {.name = name_, .type = KEY_CHOICE, .offset = offset_, .initial = initial_, .names = names_}
/* clang-format on */
/* Sets the members of *out whose keys have a default. */
void keys_initial(const struct key *keys, unsigned n, void *out);
/* The default of a key, as text. */
const char *keys_initial_of(const struct key *keys, unsigned n, const char *name);
/* Reads every setting of group g that the table names; any other setting is an error. */
void keys_read(struct build *b, config_setting_t *g, const struct key *keys, unsigned n, void *out);
/* "found <value>, expected <expected>" for a setting of the wrong type or value. */
void keys_expected(struct build *b, const config_setting_t *s, const char *expected);
/* Index of a string setting in names[], or -EINVAL with an error that lists them. */
int keys_choice(struct build *b, const config_setting_t *s, const char *const *names, unsigned n);
/* Names of nodes, processes and fabrics: 1 to 31 of [A-Za-z0-9_.-], the first a letter or digit
 * (they become file names). */
bool keys_good_name(const char *s);
/* Makes a good name from the stem of a file name. */
void keys_default_name(const char *path, char name[FAB_NAME]);
#define KEY_NAME_RULE                                                                              \
    "a name of 1 to 31 letters, digits, '_', '.' or '-' that begins with a letter or digit"

/* ---- conf_nodes.c, conf_links.c, template.c, procs.c: sections of the file ---- */
int build_add_node(struct build *b, const char *name, enum fab_kind kind, enum fab_role role,
                   int line); /* index or -errno */
/* Counts n more nodes of a kind, or links, of a line as too many, without adding them;
 * build_report_over() reports them. */
void build_over(struct build *b, uint64_t *over, uint64_t n, int line);
void build_report_over(struct build *b);
int build_find_node(const struct build *b, const char *name, size_t len);
void build_no_node(struct build *b, int line, const char *key,
                   const char *text);                      /* reports that text is not the name of a
                                                          node */
void conf_costs(struct build *b, config_setting_t *s);     /* conf_costs.c; s: or NULL */
void conf_transport(struct build *b, config_setting_t *s); /* conf_transport.c; s: or NULL */
void conf_reduce(struct build *b, config_setting_t *s, struct fab_reduce *r);
/* Values of `forwarding`, NULL ends them; index 1: switches cut through. */
extern const char *const conf_forwardings[];
void conf_nodes(struct build *b, config_setting_t *s);

/* conf_congestion.c: dcqcn, pfc_watchdog */
void conf_congestion(struct build *b, config_setting_t *root);

void link_props_init(struct link_props *p);
void conf_link_props(struct build *b, config_setting_t *s, struct link_props *p);
int build_add_link(struct build *b, fab_id a, fab_id z, const struct link_props *p,
                   int line); /* adds p->cables links */
void conf_links(struct build *b, config_setting_t *s);
/* Completes all links after the last one is read: sets properties that the file leaves open. */
void conf_links_complete(struct build *b);
/* Reads group `name` of parent; the file's link_defaults apply. After a mistake sets placeholders. */
void conf_link_group(struct build *b, config_setting_t *parent, const char *name,
                     struct link_props *p);
void link_props_placeholder(struct link_props *p);

void conf_leaf_spine(struct build *b, config_setting_t *s);
void conf_single_switch(struct build *b, config_setting_t *s);
void conf_full_mesh(struct build *b, config_setting_t *s);
void conf_gpu_nodes(struct build *b, config_setting_t *s, config_setting_t *rails); /* or NULL */
/* Adds n nodes stem0.. and returns the index of the first, or -errno. */
int template_row(struct build *b, const char *stem, uint64_t n, enum fab_kind kind,
                 enum fab_role role, int line);
/* Whether a count is missing. Reports it only if the group has no other mistake, such as a misspelt key. */
bool template_missing(struct build *b, int line, const char *key, uint32_t value, bool quiet);
/* Reports an error unless n is a multiple of the count of parts. */
void template_divides(struct build *b, int line, const char *what, uint32_t n, const char *part,
                      uint32_t by);
void template_give_up(struct build *b);

void conf_processes(struct build *b, config_setting_t *s);
/* conf_machines.c: machines, trunk_key. Sets the machine of each node. */
void conf_machines(struct build *b, config_setting_t *root);
void conf_access(struct build *b, config_setting_t *root); /* after conf_machines() */

/* ---- stages ---- */
void ports_build(struct build *b);
void topology_build(struct build *b);
void address_build(struct build *b);
void routes_build(struct build *b);
void routes_free(struct routes *w); /* or NULL */
void reach_build(struct build *b);
void tree_build(struct build *b);
void procs_build(struct build *b);
void transport_build(struct build *b);

void domain_build(struct build *b);
/* connectivity.c: reports hosts that no path joins */
void reach_check(struct build *b);

/* hops.c: next hops like fabric_hops(), but without a copy: *port points into a table, or to buf for a
 * host. */
unsigned hops_find(const struct fabric *f, fab_id node, unsigned dest,
                   fab_id buf[FAB_MAX_HOST_PORTS], const fab_id **port);

/* ecmp.c: the balanced choice, even if the fabric uses hashing */
fab_id ecmp_balanced_port(const struct fabric *f, fab_id node, int dest, uint32_t src_ip);

/* The switch at the other end of a port; FAB_NONE: the port has no link, or leads to a host. */
static inline fab_id peer_switch(const struct fabric *f, const struct fab_port *p)
{
    return p->link != FAB_NONE && f->nodes[p->peer_node].kind == FAB_SWITCH ? p->peer_node
                                                                            : FAB_NONE;
}

#endif
