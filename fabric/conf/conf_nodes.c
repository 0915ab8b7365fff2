/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes of a file:
 *
 *   nodes = ( { name = "spine0"; role = "spine"; },
 *             { name = ( "h0", "h1" ); kind = "host"; } );
 */
#include "base/nearest.h"
#include "base/units.h"
#include "fabric/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char *const kinds[] = {"host", "switch"};
/* In the order of enum fab_role. */
static const char *const roles[] = {"host", "leaf", "spine", "core", "nvswitch", "switch"};

#define SLOTS (4u * FAB_MAX_NODES) /* a power of two */
_Static_assert((SLOTS & (SLOTS - 1)) == 0, "slot_of() masks");

/* The slot of the hash index that holds a name, or would: open addressing, at most a quarter
 * full. */
static unsigned slot_of(const struct build *b, const char *name, size_t len)
{
    uint32_t h = 0x811c9dc5u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 0x01000193u;
    for (h ^= h >> 15;; h++) {
        uint16_t at = b->name_slot[h & (SLOTS - 1)];
        const char *other = at ? b->f->nodes[at - 1].name : NULL;

        if (!other || (strlen(other) == len && !memcmp(other, name, len)))
            return h & (SLOTS - 1);
    }
}

int build_find_node(const struct build *b, const char *name, size_t len)
{
    uint16_t at = b->name_slot ? b->name_slot[slot_of(b, name, len)] : 0;

    return at ? at - 1 : -ENOENT;
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

static int grow(struct build *b)
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

/* Whether one more node of this kind fits; an exceeded limit is reported once. */
static int check_limits(struct build *b, enum fab_kind kind, int line)
{
    struct fabric *f = b->f;

    if (kind == FAB_HOST && f->n_hosts == FAB_MAX_HOSTS) {
        if (!b->full_hosts)
            build_error(b, line, "found more than %u hosts, expected at most that many",
                        FAB_MAX_HOSTS);
        b->full_hosts = true;
        return -ENOSPC;
    }
    if (f->n_nodes == FAB_MAX_NODES) {
        if (!b->full_nodes)
            build_error(b, line, "found more than %u nodes, expected at most that many",
                        FAB_MAX_NODES);
        b->full_nodes = true;
        return -ENOSPC;
    }
    return 0;
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
    if (check_limits(b, kind, line)) {
        b->nodes_unknown = b->graph_broken = true;
        return -ENOSPC;
    }
    if (f->n_nodes == b->cap_nodes && grow(b))
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
    b->name_slot[slot_of(b, n->name, strlen(n->name))] = (uint16_t)(f->n_nodes + 1);
    b->node_line[f->n_nodes] = line;
    b->want_ports[f->n_nodes] = 0;
    return f->n_nodes++;
}

/* What `reduce` says about a protocol: its name, and every integer of the group, since only the
 * protocol knows which keys it has. */
static struct fab_protocol *read_protocol(struct build *b, config_setting_t *g,
                                          const struct key *keys, unsigned n)
{
    const config_setting_t *name = config_setting_get_member(g, "protocol");
    struct fab_protocol *p;

    if (!name)
        return NULL;
    if (config_setting_type(name) != CONFIG_TYPE_STRING || !*config_setting_get_string(name) ||
        strlen(config_setting_get_string(name)) >= sizeof(p->name)) {
        keys_expected(b, name, "the name of a protocol, or the path of a shared object with a /");
        return NULL;
    }
    p = arena_alloc(&b->f->arena, 1, sizeof(*p));
    if (!p)
        return NULL;
    snprintf(p->file, sizeof(p->file), "%s", b->path);
    snprintf(p->name, sizeof(p->name), "%s", config_setting_get_string(name));
    p->line = (int)config_setting_source_line(name);
    p->seat = -1;
    for (int i = 0; i < config_setting_length(g); i++) {
        const config_setting_t *s = config_setting_get_elem(g, (unsigned)i);
        struct fab_protocol_key *k = &p->key[p->n_keys];
        int type = config_setting_type(s);

        if ((type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64) ||
            p->n_keys == FAB_PROTOCOL_KEYS)
            continue;
        snprintf(k->name, sizeof(k->name), "%s", config_setting_name(s));
        k->value = config_setting_get_int64(s);
        k->line = (int)config_setting_source_line(s);
        for (unsigned j = 0; j < n; j++)
            k->known |= !strcmp(keys[j].name, config_setting_name(s));
        p->n_keys++;
    }
    return p;
}

/* Appends the keys of the group that are not those of `reduce`: the protocol checks them. */
static unsigned add_protocol_keys(struct build *b, const config_setting_t *g, struct key *keys,
                                  unsigned n, unsigned max)
{
    for (int i = 0; i < config_setting_length(g) && n < max; i++) {
        const config_setting_t *s = config_setting_get_elem(g, (unsigned)i);
        int type = config_setting_type(s);
        bool known = false;

        for (unsigned j = 0; j < n; j++)
            known |= !strcmp(keys[j].name, config_setting_name(s));
        if (known)
            continue;
        if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
            keys_expected(b, s, "an integer, as all keys of protocols are");
        keys[n++] = (struct key){config_setting_name(s), KEY_OWN, 0, 0, 0};
    }
    return n;
}

/* `reduce = { groups; slots; window; host_share; join_timeout; rounding; seed; order; memory;
 * protocol; }`, with keys of the protocol, or false. */
void conf_reduce(struct build *b, config_setting_t *s, struct fab_reduce *r)
{
    static const char *const roundings[] = {"nearest", "zero", "up", "down", "stochastic"};
    static const char *const orders[] = {"child", "arrival"};
    struct values {
        struct fab_reduce r;
        double host_share;
    } v = {{.on = true,
            .max_groups = 64,
            .max_slots = 16384,
            .window = 256,
            .memory = 16 << 20,
            .join_timeout_ps = 30 * PS_PER_S},
           0.75};
#define R(field) offsetof(struct values, r.field)
    config_setting_t *rounding, *order;
    int k;
    struct key keys[12 + FAB_PROTOCOL_KEYS] = {
        {"rounding", KEY_OWN, 0, 0, 0},
        {"order", KEY_OWN, 0, 0, 0},
        {"seed", KEY_UINT, R(seed), 0, UINT32_MAX},
        {"groups", KEY_UINT, R(max_groups), 1, 65535},
        {"slots", KEY_UINT, R(max_slots), 1, 1 << 24},
        {"window", KEY_UINT, R(window), 1, 65535},
        {"host_share", KEY_PROB, offsetof(struct values, host_share), 0, 0},
        {"join_timeout", KEY_TIME, R(join_timeout_ps), PS_PER_MS, 3600 * PS_PER_S},
        {"memory", KEY_UINT, R(memory), 1024, 1 << 30},
        {"protocol", KEY_OWN, 0, 0, 0},
    };
    unsigned n = 0;
#undef R

    if (config_setting_type(s) == CONFIG_TYPE_BOOL && !config_setting_get_bool(s)) {
        memset(r, 0, sizeof(*r));
        return;
    }
    if (config_setting_type(s) != CONFIG_TYPE_GROUP) {
        keys_expected(b, s, "false, or a group with groups, slots and window");
        return;
    }
    while (keys[n].name)
        n++;
    v.r.protocol = read_protocol(b, s, keys, n);
    if (v.r.protocol)
        n = add_protocol_keys(b, s, keys, n, LEN(keys));
    keys_read(b, s, keys, n, &v);
    *r = v.r;
    r->host_permille = (uint16_t)(v.host_share * 1000 + 0.5);
    rounding = config_setting_get_member(s, "rounding");
    k = rounding ? keys_choice(b, rounding, roundings, LEN(roundings)) : FAB_ROUND_NEAREST;
    r->rounding = k < 0 ? FAB_ROUND_NEAREST : (uint8_t)k;
    order = config_setting_get_member(s, "order");
    r->arrival = order && keys_choice(b, order, orders, LEN(orders)) == 1;
    if (r->window > r->max_slots && r->protocol) /* `slots` may be the protocol's */
        r->window = r->max_slots;
    if (r->window > r->max_slots)
        build_error(b, (int)config_setting_source_line(s),
                    "reduce: found window %u above slots %u, expected at least one window of slots",
                    r->window, r->max_slots);
}

bool conf_forwarding(struct build *b, const config_setting_t *s)
{
    static const char *const forwarding[] = {"store-and-forward", "cut-through"};
    int k = keys_choice(b, s, forwarding, LEN(forwarding));

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
        {"name", KEY_OWN, 0, 0, 0},
        {"kind", KEY_OWN, 0, 0, 0},
        {"role", KEY_OWN, 0, 0, 0},
        {"ports", KEY_UINT, offsetof(struct node_keys, ports), 1, FAB_MAX_PORTS},
        {"reduce", KEY_OWN, 0, 0, 0},
        {"forwarding", KEY_OWN, 0, 0, 0},
        {"multimem", KEY_BOOL, offsetof(struct node_keys, multimem), 0, 0},
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

void conf_nodes(struct build *b, config_setting_t *s)
{
    if (!config_setting_is_list(s)) {
        keys_expected(b, s, "a list ( { name; kind; }, ... ) of nodes");
        b->nodes_unknown = b->graph_broken = true;
        return;
    }
    for (int i = 0; i < config_setting_length(s); i++)
        read_node(b, config_setting_get_elem(s, (unsigned)i));
}
