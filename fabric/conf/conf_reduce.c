/* SPDX-License-Identifier: BSD-3-Clause */
/* What switches reduce: `reduce`, of the file and of single nodes. */
#include "base/units.h"
#include "fabric/build.h"

#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct reduce_values {
    struct fab_reduce r;
    double host_share;
    uint32_t rounding, arrival;
};

#define V(field) offsetof(struct reduce_values, field)
static const char *const roundings[] = {"nearest", "zero", "up", "down", "stochastic", NULL};
static const char *const orders[] = {"child", "arrival", NULL};
static const struct key reduce_keys[] = {
    /* Rounding of results of fp16, bf16 and 8-bit floats; `"nearest"` has ties to even. */
    CHOICE_KEY("rounding", V(rounding), roundings, "nearest"),
    /* Order in which inputs are reduced: `"child"`, reproducible bit for bit, or `"arrival"`, which
     * shows the differences from run to run of switches that reduce in order of arrival. */
    CHOICE_KEY("order", V(arrival), orders, "child"),
    /* Of stochastic rounding; the same seed gives the same bits. */
    RANGE_KEY("seed", KEY_UINT, V(r.seed), 0, UINT32_MAX, "0"),
    /* Groups of a switch at a time. */
    RANGE_KEY("groups", KEY_UINT, V(r.max_groups), 1, 65535, "64"),
    /* Packets in flight of all its groups together. */
    RANGE_KEY("slots", KEY_UINT, V(r.max_slots), 1, 1 << 24, "16384"),
    /* Packets in flight of one group, at most. */
    RANGE_KEY("window", KEY_UINT, V(r.window), 1, 65535, "256"),
    /* What one host may hold alone, of groups, slots and buffers each. It may always hold 8 groups,
     * with a `window` of slots each. */
    PLAIN_KEY("host_share", KEY_SHARE, V(host_share), "75%"),
    /* A group whose members have not all joined after this fabric time ends. */
    RANGE_KEY("join_timeout", KEY_TIME, V(r.join_timeout_ps), PS_PER_MS, 3600 * PS_PER_S, "30s"),
    /* Bytes that each protocol may use for its slots at a switch. */
    RANGE_KEY("memory", KEY_UINT, V(r.memory), 1024, 1 << 30, "16777216"),
    /* An aggregation protocol beside the built-in one: `"switchml"`, `"ps"`, `"atp"`, or the path
     * (with a `/`) of a shared object of your own. The other integers of the group are keys of it,
     * `slots` and `window` too where it has keys of that name and `groups` is not in the group.
     * Default: none. */
    OWN_KEY("protocol"),
};

/* Reads the protocol of `reduce`: its name, and every integer of the group, because only the protocol
 * knows its keys. */
static struct fab_protocol *read_protocol(struct build *b, config_setting_t *g,
                                          const struct key *keys, unsigned n)
{
    const config_setting_t *name = config_setting_get_member(g, "protocol");
    /* With `groups`, which no protocol has, `slots` and `window` are quotas of SHARP's groups, as in a conf
     * to which a protocol was added. */
    bool quotas = config_setting_get_member(g, "groups") != NULL;
    struct fab_protocol *p;

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
        int type = config_setting_type(s);
        struct fab_protocol_key k = {.line = (int)config_setting_source_line(s)};

        if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
            continue;
        snprintf(k.name, sizeof(k.name), "%s", config_setting_name(s));
        k.value = config_setting_get_int64(s);
        for (unsigned j = 0; j < n; j++)
            k.known |= !strcmp(keys[j].name, config_setting_name(s));
        if (quotas && k.known)
            continue;
        if (p->n_keys == FAB_PROTOCOL_KEYS) {
            build_error(b, k.line, "%s: found more keys of a protocol, expected at most %u", k.name,
                        FAB_PROTOCOL_KEYS);
            return NULL;
        }
        p->key[p->n_keys++] = k;
    }
    return p;
}

/* Appends the group's keys that are not those of `reduce`; the protocol checks them. */
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
        keys[n++] = (struct key)OWN_KEY(config_setting_name(s));
    }
    return n;
}

/* Reads the protocol, if there is one. Returns the number of keys of the group including the protocol's, or
 * 0 if it is not understood: then nobody knows whose keys the others are. */
static unsigned protocol_keys(struct build *b, config_setting_t *g, struct key *keys, unsigned n,
                              unsigned max, struct fab_protocol **p)
{
    if (!config_setting_get_member(g, "protocol"))
        return n;
    *p = read_protocol(b, g, keys, n);
    return *p ? add_protocol_keys(b, g, keys, n, max) : 0;
}

/* `reduce = { groups; slots; window; host_share; join_timeout; rounding; seed; order; memory;
 * protocol; }`, with keys of the protocol, or false. */
void conf_reduce(struct build *b, config_setting_t *s, struct fab_reduce *r)
{
    struct key keys[12 + FAB_PROTOCOL_KEYS];
    struct reduce_values v = {.r = {.on = true}};
    unsigned n = LEN(reduce_keys);

    if (config_setting_type(s) == CONFIG_TYPE_BOOL && !config_setting_get_bool(s)) {
        memset(r, 0, sizeof(*r));
        return;
    }
    if (config_setting_type(s) != CONFIG_TYPE_GROUP) {
        keys_expected(b, s, "false, or a group with groups, slots and window");
        return;
    }
    memcpy(keys, reduce_keys, sizeof(reduce_keys));
    n = protocol_keys(b, s, keys, n, LEN(keys), &v.r.protocol);
    if (!n)
        return;
    keys_initial(reduce_keys, LEN(reduce_keys), &v);
    keys_read(b, s, keys, n, &v);
    *r = v.r;
    r->host_permille = (uint16_t)(v.host_share * 1000 + 0.5);
    r->rounding = (uint8_t)v.rounding;
    r->arrival = v.arrival;
    if (r->window > r->max_slots && r->protocol) /* `slots` may be a key of the protocol */
        r->window = r->max_slots;
    if (r->window > r->max_slots)
        build_error(b, (int)config_setting_source_line(s),
                    "reduce: found window %u above slots %u, expected at least one window of slots",
                    r->window, r->max_slots);
}
