/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which machine runs which node:
 *
 *   machines = ( { name = "m0"; address = "192.0.2.1"; nodes = ( "leaf0", "spine0" ); },
 *                { name = "m1"; address = "192.0.2.2"; port = 4795; nodes = ( "leaf1" );
 *                  ports = ( "0000:3b:00.0", "udp" ); } );
 *   trunk_key = "a secret of 16 characters and more";
 *
 * Hosts not named are on the machine of their switch. Links between machines go through a process
 * of each machine that is named "trunk" (io/trunk).
 */
#include "fabric/build.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define LEN(a)    (sizeof(a) / sizeof((a)[0]))
#define KEY_LEAST 16

struct machine_keys {
    char name[FAB_NAME], address[128];
    uint32_t port;
};

static void take_node(struct build *b, const config_setting_t *s, fab_id machine)
{
    struct fabric *f = b->f;
    const char *text = config_setting_get_string(s);
    int line = (int)config_setting_source_line(s);
    int node = text ? build_find_node(b, text, strlen(text)) : -EINVAL;

    if (!text) {
        keys_expected(b, s, "the name of a node");
    } else if (node < 0) {
        if (!b->nodes_unknown)
            build_no_node(b, line, "nodes", text);
    } else if (f->nodes[node].machine != FAB_NONE) {
        build_error(b, line, "nodes: found \"%s\" on machine \"%s\" already, expected it on one",
                    text, f->machines[f->nodes[node].machine].name);
    } else {
        f->nodes[node].machine = machine;
    }
}

static void take_nodes(struct build *b, config_setting_t *g, fab_id machine)
{
    config_setting_t *nodes = config_setting_get_member(g, "nodes");

    if (!nodes || !(config_setting_is_list(nodes) || config_setting_is_array(nodes)) ||
        !config_setting_length(nodes)) {
        build_error(b, (int)config_setting_source_line(nodes ? nodes : g),
                    "found a machine without nodes, expected nodes = ( \"leaf0\", ... )");
        return;
    }
    for (int i = 0; i < config_setting_length(nodes); i++)
        take_node(b, config_setting_get_elem(nodes, (unsigned)i), machine);
}

/* What is wrong with a device of `ports`; NULL: it can carry frames between machines. */
static const char *device_wrong(const char *text, bool last)
{
    if (!text || !*text)
        return "a device as of a port to the outside, or \"" FAB_UDP "\"";
    if (strlen(text) >= sizeof(((struct fab_machine *)NULL)->device[0]))
        return "at most 127 characters";
    if (!strncmp(text, "vhost:", 6))
        return "a device that leads to other machines, no socket of a guest";
    return !strcmp(text, FAB_UDP) && !last ? "it as the last one: there is always UDP" : NULL;
}

static void take_devices(struct build *b, config_setting_t *g, struct fab_machine *m)
{
    config_setting_t *s = config_setting_get_member(g, "ports");
    bool list = s && (config_setting_is_list(s) || config_setting_is_array(s));
    int n = list ? config_setting_length(s) : 0;

    if (s && (n < 1 || n > FAB_MACHINE_DEVICES)) {
        build_error(b, (int)config_setting_source_line(s),
                    "ports: found %d, expected a list of 1 to %d devices, as ( \"0000:3b:00.0\", "
                    "\"" FAB_UDP "\" )",
                    n, FAB_MACHINE_DEVICES);
        return;
    }
    for (int i = 0; i < n; i++) {
        const char *text = config_setting_get_string_elem(s, i);
        const char *expected = device_wrong(text, i == n - 1);

        if (expected)
            build_error(b, (int)config_setting_source_line(s),
                        "ports: found \"%.40s\", expected %s", text ? text : "no text", expected);
        else
            strcpy(m->device[m->n_devices++], text);
    }
}

static void check_address(struct build *b, config_setting_t *g, const struct machine_keys *k,
                          struct fab_machine *m)
{
    int line = (int)config_setting_source_line(g);
    struct in_addr at;

    if (!*k->address || inet_pton(AF_INET, k->address, &at) != 1 || !at.s_addr) {
        build_error(b, line,
                    "address: found \"%s\", expected the IPv4 address at which the other machines "
                    "reach this one, as \"192.0.2.1\"",
                    k->address);
        return;
    }
    m->ip = ntohl(at.s_addr);
    m->port = (uint16_t)k->port;
    for (unsigned i = 0; i < b->f->n_machines; i++)
        if (b->f->machines[i].ip == m->ip && b->f->machines[i].port == m->port)
            build_error(b, line,
                        "address: found %s port %u, which machine \"%s\" has, expected another",
                        k->address, k->port, b->f->machines[i].name);
}

static void read_machine(struct build *b, config_setting_t *g)
{
    static const struct key keys[] = {
        /* Its name. Needed. */
        PLAIN_KEY("name", KEY_NAME, offsetof(struct machine_keys, name), NULL),
        /* IPv4 address at which the others reach it. Needed. */
        PLAIN_KEY("address", KEY_TEXT, offsetof(struct machine_keys, address), NULL),
        /* UDP port at which the others reach it. */
        RANGE_KEY("port", KEY_UINT, offsetof(struct machine_keys, port), 1, UINT16_MAX, "4795"),
        /* List of the names of its nodes. Needed. */
        OWN_KEY("nodes"),
        /* Up to four devices, of which the first that opens carries its frames instead of UDP.
         * Default: UDP. */
        OWN_KEY("ports"),
    };
    struct machine_keys k = {.name = ""};
    struct fabric *f = b->f;
    struct fab_machine *m = &f->machines[f->n_machines];
    unsigned before = b->errs->total;

    if (!config_setting_is_group(g)) {
        keys_expected(b, g, "a group { name; address; nodes; } that describes a machine");
        return;
    }
    keys_initial(keys, LEN(keys), &k);
    keys_read(b, g, keys, LEN(keys), &k);
    memcpy(m->name, k.name, sizeof(m->name));
    if ((!*k.name || !strcmp(k.name, FAB_TRUNK)) && b->errs->total == before)
        build_error(b, (int)config_setting_source_line(g),
                    "name: found \"%s\", expected the name of a machine, not \"" FAB_TRUNK "\"",
                    k.name);
    for (unsigned i = 0; i < f->n_machines; i++)
        if (*k.name && !strcmp(f->machines[i].name, k.name))
            build_error(b, (int)config_setting_source_line(g),
                        "name: found \"%s\", expected a name that no other machine has", k.name);
    if (b->errs->total == before)
        check_address(b, g, &k, m);
    take_devices(b, g, m);
    take_nodes(b, g, f->n_machines++);
}

static void read_key(struct build *b, config_setting_t *root)
{
    config_setting_t *s = config_setting_get_member(root, "trunk_key");
    const char *text = s ? config_setting_get_string(s) : NULL;

    if (!s && b->f->n_machines > 1)
        build_error(b, (int)config_setting_source_line(config_setting_get_member(root, "machines")),
                    "machines: found no trunk_key, expected a secret that the machines share, of "
                    "%u to %zu characters",
                    KEY_LEAST, sizeof(b->f->trunk_key) - 1);
    else if (s && (!text || strlen(text) < KEY_LEAST || strlen(text) >= sizeof(b->f->trunk_key)))
        build_error(b, (int)config_setting_source_line(s),
                    "trunk_key: found %zu characters, expected a text of %u to %zu",
                    text ? strlen(text) : 0, KEY_LEAST, sizeof(b->f->trunk_key) - 1);
    else if (s)
        memcpy(b->f->trunk_key, text, strlen(text));
}

void conf_machines(struct build *b, config_setting_t *root)
{
    config_setting_t *s = config_setting_get_member(root, "machines");
    struct fabric *f = b->f;
    unsigned before = b->errs->total;
    int n = s && config_setting_is_list(s) ? config_setting_length(s) : 0;

    if (s && (n < 1 || n > FAB_MAX_MACHINES)) {
        build_error(b, (int)config_setting_source_line(s),
                    "machines: found %d, expected a list ( { name; address; nodes; }, ... ) of 1 "
                    "to %d",
                    n, FAB_MAX_MACHINES);
        return;
    }
    f->machines = s ? build_alloc(b, (size_t)n, sizeof(*f->machines)) : NULL;
    for (int i = 0; f->machines && i < n; i++)
        read_machine(b, config_setting_get_elem(s, (unsigned)i));
    read_key(b, root);
    for (unsigned i = 0; s && i < f->n_nodes && b->errs->total == before; i++)
        if (f->nodes[i].kind == FAB_SWITCH && f->nodes[i].machine == FAB_NONE)
            build_error(b, (int)config_setting_source_line(s),
                        "machines: found switch \"%s\" on none, expected it on one",
                        f->nodes[i].name);
}
