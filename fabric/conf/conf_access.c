/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may run programs as which hosts of a service's fabric, beside root (io/access.h):
 *
 *   access = ( { user = "alice"; hosts = ( "h0" ); },
 *              { group = "teachers"; hosts = "all"; } );
 */
#include "fabric/build.h"

#include <errno.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct access_keys {
    char user[128], group[128];
};

static void take_host(struct build *b, const config_setting_t *s, struct fab_access *a)
{
    const char *text = config_setting_get_string(s);
    int line = (int)config_setting_source_line(s);
    int node = text ? build_find_node(b, text, strlen(text)) : -EINVAL;

    if (!text)
        keys_expected(b, s, "the name of a host");
    else if (node < 0 && !b->nodes_unknown)
        build_no_node(b, line, "hosts", text);
    else if (node >= 0 && b->f->nodes[node].kind != FAB_HOST)
        build_error(b, line, "hosts: found \"%s\", which is a switch, expected a host", text);
    else if (node >= 0)
        a->hosts[a->n_hosts++] = (fab_id)node;
}

static void take_hosts(struct build *b, config_setting_t *g, struct fab_access *a)
{
    config_setting_t *s = config_setting_get_member(g, "hosts");
    bool list = s && (config_setting_is_list(s) || config_setting_is_array(s));
    const char *text = s ? config_setting_get_string(s) : NULL;
    int n = list ? config_setting_length(s) : 0;

    a->all = text && !strcmp(text, "all");
    if (!a->all && !n) {
        build_error(b, (int)config_setting_source_line(s ? s : g),
                    "found access without hosts, expected hosts = ( \"h0\", ... ) or \"all\"");
        return;
    }
    a->hosts = n ? build_alloc(b, (size_t)n, sizeof(*a->hosts)) : NULL;
    for (int i = 0; a->hosts && i < n; i++)
        take_host(b, config_setting_get_elem(s, (unsigned)i), a);
}

static void read_access(struct build *b, config_setting_t *g)
{
    static const struct key keys[] = {
        /* A user. Needed, or `group`. */
        PLAIN_KEY("user", KEY_TEXT, offsetof(struct access_keys, user), NULL),
        /* A group of users. Needed, or `user`. */
        PLAIN_KEY("group", KEY_TEXT, offsetof(struct access_keys, group), NULL),
        /* List of the names of hosts, or `"all"`. Needed. */
        OWN_KEY("hosts"),
    };
    struct fab_access *a = &b->f->access[b->f->n_access];
    struct access_keys k = {.user = ""};

    if (!config_setting_is_group(g)) {
        keys_expected(b, g, "a group { user or group; hosts; }");
        return;
    }
    keys_read(b, g, keys, LEN(keys), &k);
    if (!*k.user == !*k.group)
        build_error(b, (int)config_setting_source_line(g),
                    "found access with %s, expected one of them",
                    *k.user ? "user and group" : "neither user nor group");
    a->group = *k.group;
    memcpy(a->name, *k.group ? k.group : k.user, sizeof(a->name));
    take_hosts(b, g, a);
    b->f->n_access++;
}

void conf_access(struct build *b, config_setting_t *root)
{
    config_setting_t *s = config_setting_get_member(root, "access");
    int n = s && config_setting_is_list(s) ? config_setting_length(s) : 0;

    if (!s)
        return;
    if (n < 1 || n > FAB_MAX_ACCESS) {
        build_error(b, (int)config_setting_source_line(s),
                    "access: found %d, expected a list ( { user; hosts; }, ... ) of 1 to %d", n,
                    FAB_MAX_ACCESS);
        return;
    }
    if (b->f->trunk_key[0])
        build_error(b, (int)config_setting_source_line(s),
                    "access: found a trunk_key, which those whom access is given could read, "
                    "expected a fabric of one machine");
    b->f->access = build_alloc(b, (size_t)n, sizeof(*b->f->access));
    for (int i = 0; b->f->access && i < n; i++)
        read_access(b, config_setting_get_elem(s, (unsigned)i));
}
