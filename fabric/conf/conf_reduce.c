/* SPDX-License-Identifier: BSD-3-Clause */
/* What switches reduce: `reduce`, of the file and of single nodes. */
#include "base/units.h"
#include "fabric/build.h"

#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* What `reduce` says about a protocol: its name, and every integer of the group, since only the
 * protocol knows which keys it has. */
static struct fab_protocol *read_protocol(struct build *b, config_setting_t *g,
                                          const struct key *keys, unsigned n)
{
    const config_setting_t *name = config_setting_get_member(g, "protocol");
    /* beside `groups`, which no protocol has, `slots` and `window` are quotas of SHARP's groups, as
     * in every conf to which somebody adds a protocol */
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

/* Reads the protocol, if there is one; returns how many keys the group has with its, or 0 where it is not
 * understood and so whose keys the others are. */
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
        OWN_KEY("rounding"),
        OWN_KEY("order"),
        {"seed", KEY_UINT, R(seed), 0, UINT32_MAX},
        {"groups", KEY_UINT, R(max_groups), 1, 65535},
        {"slots", KEY_UINT, R(max_slots), 1, 1 << 24},
        {"window", KEY_UINT, R(window), 1, 65535},
        PLAIN_KEY("host_share", KEY_SHARE, offsetof(struct values, host_share)),
        {"join_timeout", KEY_TIME, R(join_timeout_ps), PS_PER_MS, 3600 * PS_PER_S},
        {"memory", KEY_UINT, R(memory), 1024, 1 << 30},
        OWN_KEY("protocol"),
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
    n = protocol_keys(b, s, keys, n, LEN(keys), &v.r.protocol);
    if (!n)
        return;
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
