/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes of a file:
 *
 *   nodes = ( { name = "spine0"; role = "spine"; },
 *             { name = ( "h0", "h1" ); kind = "host"; },
 *             { of = "leaf2"; reduce = false; } );        a node of the template, or one above
 */
#include "base/nearest.h"
#include "base/units.h"
#include "fabric/build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char *const kinds[] = {"host", "switch"};
/* By enum fab_role. */
static const char *const roles[] = {"host", "leaf", "spine", "core", "nvswitch", "switch"};

#define SLOTS (FAB_MAX_NODES > 8192 ? 1u << 20 : 1u << 15) /* a power of two */
_Static_assert(SLOTS >= 4 * FAB_MAX_NODES, "see slot_of()");

/* The entry of the hash index for a name: the one that has it, or a free one. Open addressing, at most a
 * quarter full. */
static unsigned slot_of(const struct build *b, const char *name, size_t len)
{
    uint32_t h = 0x811c9dc5u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 0x01000193u;
    for (h ^= h >> 15;; h++) {
        fab_id at = b->name_slot[h & (SLOTS - 1)];
        const char *other = at ? b->f->nodes[at - 1].name : NULL;

        if (!other || (strlen(other) == len && !memcmp(other, name, len)))
            return h & (SLOTS - 1);
    }
}

int build_find_node(const struct build *b, const char *name, size_t len)
{
    fab_id at = b->name_slot ? b->name_slot[slot_of(b, name, len)] : 0;

    return at ? (int)at - 1 : -ENOENT;
}

void build_no_node(struct build *b, int line, const char *key, const char *text)
{
    const char *near = NULL, **names = calloc(b->f->n_nodes + 1u, sizeof(*names));

    for (unsigned i = 0; names && i < b->f->n_nodes; i++)
        names[i] = b->f->nodes[i].name;
    if (names)
        near = nearest_of(text, names, b->f->n_nodes);
    build_error(b, line, "%s: found \"%.60s\", expected the name of a node%s%s%s", key, text,
                near ? ", as \"" : "", near ? near : "", near ? "\"" : "");
    free(names);
}

static int conf_nodes_grow(struct build *b)
{
    unsigned cap = b->cap_nodes ? 2 * b->cap_nodes : 64;
    struct fab_node *nodes = build_alloc(b, cap, sizeof(*nodes));
    int *line = realloc(b->node_line, cap * sizeof(*line));
    uint32_t *ports;

    if (!b->name_slot)
        b->name_slot = calloc(SLOTS, sizeof(*b->name_slot));
    if (line)
        b->node_line = line;
    ports = realloc(b->want_ports, cap * sizeof(*ports));
    if (ports)
        b->want_ports = ports;
    if (!nodes || !line || !ports || !b->name_slot) {
        b->no_memory = true;
        return -ENOMEM;
    }
    if (b->cap_nodes)
        memcpy(nodes, b->f->nodes, b->f->n_nodes * sizeof(*nodes));
    b->f->nodes = nodes;
    b->cap_nodes = cap;
    return 0;
}

void build_over(struct build *b, uint64_t *over, uint64_t n, int line)
{
    if (!b->over_hosts && !b->over_nodes && !b->over_links)
        b->over_line = line;
    *over += n;
    b->nodes_unknown = b->graph_broken = true;
}

/* Programs that run a fabric also say which programs take a larger one. */
static void too_many(struct build *b, const char *found, const char *what, unsigned most,
                     unsigned planned)
{
    char hint[96] = "";

    if (most < planned)
        snprintf(hint, sizeof(hint),
                 " in a fabric that runs; trib plan and trib model take up to %u", planned);
    build_error(b, b->over_line, "found %s %s, expected at most %u%s", found, what, most, hint);
}

void build_report_over(struct build *b)
{
    char found[32];

    snprintf(found, sizeof(found), "%" PRIu64, FAB_MAX_HOSTS + b->over_hosts);
    if (b->over_hosts)
        too_many(b, found, "hosts", FAB_MAX_HOSTS, FAB_PLAN_HOSTS);
    else if (b->over_nodes)
        too_many(b, "more", "nodes", FAB_MAX_NODES, FAB_PLAN_NODES);
    else if (b->over_links)
        too_many(b, "more", "links", FAB_MAX_LINKS, FAB_PLAN_LINKS);
}

/* Checks that one more node of this kind fits. */
static int check_limits(struct build *b, enum fab_kind kind, int line)
{
    if (kind == FAB_HOST && b->f->n_hosts == FAB_MAX_HOSTS)
        build_over(b, &b->over_hosts, 1, line);
    else if (b->f->n_nodes == FAB_MAX_NODES)
        build_over(b, &b->over_nodes, 1, line);
    else
        return 0;
    return -ENOSPC;
}

int build_add_node(struct build *b, const char *name, enum fab_kind kind, enum fab_role role,
                   int line)
{
    struct fabric *f = b->f;
    struct fab_node *n;
    int old = build_find_node(b, name, strlen(name));

    if (old >= 0) {
        build_error(b, line, "name: found \"%s\", expected a name that no other node has (line %d)",
                    name, b->node_line[old]);
        b->graph_broken = true;
        return -EEXIST;
    }
    if (check_limits(b, kind, line))
        return -ENOSPC;
    if (f->n_nodes == b->cap_nodes && conf_nodes_grow(b))
        return -ENOMEM;
    n = &f->nodes[f->n_nodes];
    memset(n, 0, sizeof(*n));
    snprintf(n->name, sizeof(n->name), "%s", name);
    n->kind = kind;
    n->role = role;
    if (kind == FAB_HOST) {
        n->host_index = f->n_hosts++;
    } else {
        n->reduce = b->reduce_default;
        n->cut_through = b->cut_through_default;
    }
    b->name_slot[slot_of(b, n->name, strlen(n->name))] = (fab_id)(f->n_nodes + 1);
    b->node_line[f->n_nodes] = line;
    b->want_ports[f->n_nodes] = 0;
    return (int)f->n_nodes++;
}

const char *const conf_forwardings[] = {"store-and-forward", "cut-through", NULL};

/* Reads `forwarding` of a node; the file's after a mistake. */
static bool conf_forwarding(struct build *b, const config_setting_t *s)
{
    int k = keys_choice(b, s, conf_forwardings, 2);

    return k < 0 ? b->cut_through_default : k == 1;
}

/* Kind and role complete each other: a role implies the kind, a kind without role is a plain host
 * or switch. */
static int read_kind(struct build *b, config_setting_t *g, enum fab_kind *kind, enum fab_role *role)
{
    config_setting_t *ks = config_setting_get_member(g, "kind"),
                     *rs = config_setting_get_member(g, "role");
    int k = ks ? keys_choice(b, ks, kinds, LEN(kinds)) : -ENOENT;
    int r = rs ? keys_choice(b, rs, roles, LEN(roles)) : -ENOENT;

    if (k == -EINVAL || r == -EINVAL)
        return -EINVAL;
    if (k < 0 && r < 0) {
        build_error(b, (int)config_setting_source_line(g),
                    "found a node without kind and role, expected kind = \"host\" or \"switch\"");
        return -EINVAL;
    }
    if (k < 0)
        k = r == FAB_ROLE_HOST ? FAB_HOST : FAB_SWITCH;
    if (r < 0)
        r = k == FAB_HOST ? FAB_ROLE_HOST : FAB_ROLE_SWITCH;
    if ((k == FAB_HOST) != (r == FAB_ROLE_HOST)) {
        keys_expected(b, rs,
                      k == FAB_HOST ? "role \"host\" for kind \"host\""
                                    : "a switch's role for kind \"switch\"");
        return -EINVAL;
    }
    *kind = (enum fab_kind)k;
    *role = (enum fab_role)r;
    return 0;
}

struct node_keys {
    enum fab_kind kind;
    enum fab_role role;
    struct fab_reduce reduce;
    uint32_t ports;
    bool multimem, cut_through;
};

/* Keys of an entry with `of`. */
static const struct key change_keys[] = {
    /* The name of a switch that is there, or a list of names. Needed. */
    OWN_KEY("of"),
    /* As of the file. Default: what it has. */
    OWN_KEY("reduce"),
    /* As of the file. Default: what it has. */
    OWN_KEY("forwarding"),
    /* As of `gpu_nodes`, at NVSwitches. Default: what it has. */
    PLAIN_KEY("multimem", KEY_BOOL, offsetof(struct node_keys, multimem), NULL),
};

static void add_named(struct build *b, const config_setting_t *name, const struct node_keys *k)
{
    const char *text = config_setting_get_string(name);
    int i;

    if (!text || !keys_good_name(text)) {
        keys_expected(b, name, KEY_NAME_RULE);
        b->nodes_unknown = b->graph_broken = true;
        return;
    }
    i = build_add_node(b, text, k->kind, k->role, (int)config_setting_source_line(name));
    if (i < 0)
        return;
    b->want_ports[i] = k->ports;
    if (k->kind == FAB_SWITCH) {
        b->f->nodes[i].reduce = k->reduce;
        b->f->nodes[i].cut_through = k->cut_through;
    }
    b->f->nodes[i].multimem = k->multimem;
}

/* Keys that only switches have. */
static void read_switch(struct build *b, config_setting_t *g, struct node_keys *k)
{
    static const char *const names[] = {"reduce", "forwarding"};
    const config_setting_t *forwarding = config_setting_get_member(g, "forwarding");
    config_setting_t *reduce = config_setting_get_member(g, "reduce");

    for (unsigned i = 0; i < LEN(names) && k->kind == FAB_HOST; i++) {
        const config_setting_t *s = config_setting_get_member(g, names[i]);

        if (s)
            build_error(b, (int)config_setting_source_line(s),
                        "%s: found it at a host, expected it at switches only", names[i]);
    }
    if (reduce && k->kind == FAB_SWITCH)
        conf_reduce(b, reduce, &k->reduce);
    if (forwarding && k->kind == FAB_SWITCH)
        k->cut_through = conf_forwarding(b, forwarding);
    if (k->multimem && k->role != FAB_ROLE_NVSWITCH) {
        build_error(b, (int)config_setting_source_line(config_setting_get_member(g, "multimem")),
                    "multimem: found it at \"%s\", expected it at role \"nvswitch\" only",
                    roles[k->role]);
        k->multimem = false;
    }
}

static void read_node(struct build *b, config_setting_t *g)
{
    static const struct key keys[] = {
        /* Its name, or a list of names of nodes that are alike: 1 to 31 letters, digits, `_`, `.`
         * or `-`. Needed. */
        OWN_KEY("name"),
        /* `"host"` or `"switch"`; this or `role` is needed. Default: that of the role. */
        OWN_KEY("kind"),
        /* `"host"`, `"switch"`, `"leaf"`, `"nvswitch"`, `"spine"` or `"core"`: sets the level of a
         * switch. Default: the kind. */
        OWN_KEY("role"),
        /* How many ports it has. Default: as many as links need. */
        RANGE_KEY("ports", KEY_UINT, offsetof(struct node_keys, ports), 1, FAB_MAX_PORTS, NULL),
        /* As of the file, at switches. Default: the file's. */
        OWN_KEY("reduce"),
        /* As of the file, at switches. Default: the file's. */
        OWN_KEY("forwarding"),
        /* Whether a switch of role `nvswitch` offers multicast regions. */
        PLAIN_KEY("multimem", KEY_BOOL, offsetof(struct node_keys, multimem), "false"),
    };
    struct node_keys k = {.kind = FAB_SWITCH,
                          .role = FAB_ROLE_SWITCH,
                          .reduce = b->reduce_default,
                          .cut_through = b->cut_through_default};
    config_setting_t *name;

    if (config_setting_type(g) != CONFIG_TYPE_GROUP) {
        keys_expected(b, g, "a group { name; kind; } that describes a node");
        b->nodes_unknown = b->graph_broken = true;
        return;
    }
    keys_initial(keys, LEN(keys), &k);
    keys_read(b, g, keys, LEN(keys), &k);
    /* A node of unknown kind is registered too, so that links to it are not reported as well. */
    if (read_kind(b, g, &k.kind, &k.role))
        b->graph_broken = true;
    read_switch(b, g, &k);
    if (k.kind == FAB_HOST && k.ports > FAB_MAX_HOST_PORTS) {
        build_error(b, (int)config_setting_source_line(g),
                    "ports: found %u at a host, expected at most %u", k.ports, FAB_MAX_HOST_PORTS);
        k.ports = 0;
    }
    name = config_setting_get_member(g, "name");
    if (!name) {
        build_error(b, (int)config_setting_source_line(g),
                    "found a node without name, expected name = \"...\"");
        b->nodes_unknown = b->graph_broken = true;
    } else if (config_setting_is_list(name) || config_setting_is_array(name)) {
        for (int i = 0; i < config_setting_length(name); i++)
            add_named(b, config_setting_get_elem(name, (unsigned)i), &k);
    } else {
        add_named(b, name, &k);
    }
}

/* ---- changes of existing nodes ---- */

/* The line of an earlier entry of the list that changes the same node; 0: there is none. */
static int changed_before(const config_setting_t *g, const char *name)
{
    config_setting_t *list = config_setting_parent(g);

    for (int i = 0; i < config_setting_index(g); i++) {
        config_setting_t *other = config_setting_get_elem(list, (unsigned)i);
        config_setting_t *of =
            config_setting_is_group(other) ? config_setting_get_member(other, "of") : NULL;
        int n = !of ? 0 : config_setting_is_aggregate(of) ? config_setting_length(of) : 1;

        for (int k = 0; k < n; k++) {
            const char *text = config_setting_is_aggregate(of)
                                   ? config_setting_get_string_elem(of, k)
                                   : config_setting_get_string(of);

            if (text && !strcmp(text, name))
                return (int)config_setting_source_line(other);
        }
    }
    return 0;
}

/* Changes one node, as the keys of g say, which only switches have. */
static void change_node(struct build *b, config_setting_t *g, const config_setting_t *of)
{
    const char *text = config_setting_get_string(of);
    int line = (int)config_setting_source_line(of), i, before;
    struct node_keys k;
    struct fab_node *n;

    if (!text) {
        keys_expected(b, of, "the name of a node, or a list of them");
        return;
    }
    i = build_find_node(b, text, strlen(text));
    before = changed_before(g, text);
    if (i < 0 && !b->nodes_unknown)
        build_no_node(b, line, "of", text);
    else if (before)
        build_error(b, line, "of: found \"%s\" a second time, expected its keys at line %d", text,
                    before);
    if (i < 0 || before)
        return;
    n = &b->f->nodes[i];
    k = (struct node_keys){.kind = n->kind,
                           .role = n->role,
                           .reduce = n->reduce,
                           .multimem = n->multimem,
                           .cut_through = n->cut_through};
    keys_read(b, g, change_keys, LEN(change_keys), &k);
    read_switch(b, g, &k);
    if (n->kind == FAB_SWITCH) {
        n->reduce = k.reduce;
        n->cut_through = k.cut_through;
    }
    n->multimem = k.multimem;
}

/* Whether a list of names has the name at i already before i. */
static bool named_before(const config_setting_t *names, int i)
{
    const char *name = config_setting_get_string_elem(names, i);

    for (int k = 0; name && k < i; k++) {
        const char *other = config_setting_get_string_elem(names, k);

        if (other && !strcmp(other, name))
            return true;
    }
    return false;
}

static void change_nodes(struct build *b, config_setting_t *g, const config_setting_t *of)
{
    static const char *const made[] = {"name", "kind", "role", "ports"};

    for (unsigned i = 0; i < LEN(made); i++) {
        const config_setting_t *s = config_setting_get_member(g, made[i]);

        if (s) {
            build_error(b, (int)config_setting_source_line(s),
                        "%s: found it with of, expected it where the node is made", made[i]);
            return;
        }
    }
    if (config_setting_length(g) < 2)
        build_error(b, (int)config_setting_source_line(g),
                    "of: found nothing with it, expected reduce, forwarding or multimem");
    if (!config_setting_is_list(of) && !config_setting_is_array(of)) {
        change_node(b, g, of);
        return;
    }
    if (!config_setting_length(of))
        build_error(b, (int)config_setting_source_line(of),
                    "of: found no name, expected the name of a node, or a list of them");
    for (int i = 0; i < config_setting_length(of); i++) {
        if (named_before(of, i))
            build_error(b, (int)config_setting_source_line(of),
                        "of: found \"%s\" twice, expected it once",
                        config_setting_get_string_elem(of, i));
        else
            change_node(b, g, config_setting_get_elem(of, (unsigned)i));
    }
}

void conf_nodes(struct build *b, config_setting_t *s)
{
    if (!config_setting_is_list(s)) {
        keys_expected(b, s, "a list ( { name; kind; }, ... ) of nodes");
        b->nodes_unknown = b->graph_broken = true;
        return;
    }
    for (int i = 0; i < config_setting_length(s); i++) {
        config_setting_t *g = config_setting_get_elem(s, (unsigned)i);
        config_setting_t *of =
            config_setting_is_group(g) ? config_setting_get_member(g, "of") : NULL;

        if (of)
            change_nodes(b, g, of);
        else
            read_node(b, g);
    }
}
