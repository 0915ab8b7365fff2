/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which trib-switch process runs which node:
 *
 *   processes = "one";         all of them in a process named "fabric"; with machines, those of each
 *                              in a process named like it
 *   processes = "per_node";    one per switch, named like it; a host's NIC lives with its switch
 *   processes = ( { name = "left"; nodes = ( "leaf0", "spine0" ); }, ... );    hosts not named live
 * with their switch
 */
#include "fabric/build.h"

#include <errno.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void read_proc_nodes(struct build *b, config_setting_t *list, fab_id proc)
{
    struct fabric *f = b->f;

    for (int i = 0; i < config_setting_length(list); i++) {
        const config_setting_t *s = config_setting_get_elem(list, (unsigned)i);
        const char *text = config_setting_get_string(s);
        int node = text ? build_find_node(b, text, strlen(text)) : -EINVAL;

        if (!text) {
            keys_expected(b, s, "the name of a node");
        } else if (node < 0) {
            if (!b->nodes_unknown)
                build_no_node(b, (int)config_setting_source_line(s), "nodes", text);
        } else if (f->nodes[node].proc != FAB_NONE) {
            build_error(b, (int)config_setting_source_line(s),
                        "nodes: found \"%s\" in process \"%s\" already, expected it in one", text,
                        f->procs[f->nodes[node].proc].name);
        } else {
            f->nodes[node].proc = proc;
        }
    }
}

static void read_proc(struct build *b, config_setting_t *g)
{
    static const struct key keys[] = {
        /* Its name. Needed. */
        PLAIN_KEY("name", KEY_NAME, offsetof(struct fab_proc, name), NULL),
        /* List of the names of its nodes. Needed. */
        OWN_KEY("nodes"),
    };
    struct fabric *f = b->f;
    struct fab_proc p = {0};
    config_setting_t *nodes;
    unsigned before = b->errs->total;

    if (!config_setting_is_group(g)) {
        keys_expected(b, g, "a group { name; nodes; } that describes a process");
        return;
    }
    keys_read(b, g, keys, LEN(keys), &p);
    nodes = config_setting_get_member(g, "nodes");
    if (!p.name[0] && b->errs->total == before)
        build_error(b, (int)config_setting_source_line(g),
                    "found a process without name, expected name = \"...\"");
    for (unsigned i = 0; i < f->n_procs; i++)
        if (p.name[0] && !strcmp(f->procs[i].name, p.name))
            build_error(b, (int)config_setting_source_line(g),
                        "name: found \"%s\", expected a name that no other process has", p.name);
    p.machine = FAB_NONE;
    f->procs[f->n_procs] = p;
    if (!nodes || !(config_setting_is_list(nodes) || config_setting_is_array(nodes)) ||
        !config_setting_length(nodes))
        build_error(b, (int)config_setting_source_line(nodes ? nodes : g),
                    "found a process without nodes, expected nodes = ( \"leaf0\", ... )");
    else
        read_proc_nodes(b, nodes, f->n_procs);
    f->n_procs++;
}

void conf_processes(struct build *b, config_setting_t *s)
{
    static const char *const modes[] = {"one", "per_node"};
    struct fabric *f = b->f;
    unsigned before = b->errs->total;
    int n;

    b->proc_line = (int)config_setting_source_line(s);
    if (!config_setting_is_list(s)) {
        int mode = config_setting_type(s) == CONFIG_TYPE_STRING
                       ? keys_choice(b, s, modes, LEN(modes))
                       : -EINVAL;

        if (mode >= 0)
            b->proc_mode = mode ? PROCS_PER_NODE : PROCS_ONE;
        else if (config_setting_type(s) != CONFIG_TYPE_STRING)
            keys_expected(b, s, "\"one\", \"per_node\" or a list ( { name; nodes; }, ... )");
        return;
    }
    n = config_setting_length(s);
    if (n < 1 || n > FAB_MAX_PROCS) {
        build_error(b, (int)config_setting_source_line(s), "processes: found %d, expected 1 to %d",
                    n, FAB_MAX_PROCS);
        return;
    }
    b->proc_mode = PROCS_LISTED;
    f->procs = build_alloc(b, FAB_MAX_PROCS, sizeof(*f->procs));
    if (!f->procs)
        return;
    for (int i = 0; i < n; i++)
        read_proc(b, config_setting_get_elem(s, (unsigned)i));
    for (unsigned i = 0; i < f->n_nodes && b->errs->total == before; i++)
        if (f->nodes[i].kind == FAB_SWITCH && f->nodes[i].proc == FAB_NONE)
            build_error(b, (int)config_setting_source_line(s),
                        "processes: found switch \"%s\" in none, expected it in one",
                        f->nodes[i].name);
}

static int add_proc(struct build *b, const char *name, fab_id machine)
{
    struct fabric *f = b->f;

    if (f->n_procs == FAB_MAX_PROCS) {
        build_error(b, b->proc_line, "processes: found more than %d, expected at most that many",
                    FAB_MAX_PROCS);
        return -ENOSPC;
    }
    snprintf(f->procs[f->n_procs].name, sizeof(f->procs->name), "%s", name);
    f->procs[f->n_procs].machine = machine;
    return (int)f->n_procs++;
}

/* The process named after a machine; without machines the single process. */
static int proc_of_machine(struct build *b, fab_id machine)
{
    const char *name = machine == FAB_NONE ? "fabric" : b->f->machines[machine].name;

    for (unsigned i = 0; i < b->f->n_procs; i++)
        if (b->f->procs[i].machine == machine && !strcmp(b->f->procs[i].name, name))
            return (int)i;
    return add_proc(b, name, machine);
}

/* Places a host's NIC in the process of the node at the other end of its first port, if that is on its
 * machine. Two hosts back to back share a process named after the first. A host outside also gets the
 * process of its switch, although nobody rings its bells. */
static int place_host(struct build *b, struct fab_node *n)
{
    struct fab_node *peer = &b->f->nodes[n->ports[0].peer_node];
    fab_id proc = peer->proc;

    if (n->machine == FAB_NONE)
        n->machine = peer->machine;
    if (n->proc != FAB_NONE)
        return 0;
    if (proc == FAB_NONE || n->machine != peer->machine) {
        int own = n->machine == FAB_NONE ? add_proc(b, n->name, FAB_NONE)
                                         : proc_of_machine(b, n->machine);

        if (own < 0)
            return own;
        proc = (fab_id)own;
    }
    n->proc = proc;
    return 0;
}

/* Checks that every process is on one machine, and that none has the trunk's name. */
static void check_machines(struct build *b)
{
    struct fabric *f = b->f;

    for (unsigned i = 0; i < f->n_nodes && f->n_machines && !build_failed(b); i++) {
        struct fab_proc *p = &f->procs[f->nodes[i].proc];

        if (p->machine == FAB_NONE)
            p->machine = f->nodes[i].machine;
        if (f->nodes[i].machine == FAB_NONE)
            build_error(b, b->node_line[i],
                        "machines: found host \"%s\", and what it is linked to, on none, expected "
                        "it on one",
                        f->nodes[i].name);
        else if (p->machine != f->nodes[i].machine)
            build_error(b, b->proc_line,
                        "processes: found \"%s\" of process \"%s\" on machine \"%s\", expected all "
                        "of its nodes on \"%s\"",
                        f->nodes[i].name, p->name, f->machines[f->nodes[i].machine].name,
                        f->machines[p->machine].name);
        if (!strcmp(p->name, FAB_TRUNK))
            build_error(b, b->proc_line,
                        "processes: found \"" FAB_TRUNK "\", expected another name: machines have "
                        "a process of that name");
    }
}

static int place_nodes(struct build *b)
{
    struct fabric *f = b->f;

    for (unsigned i = 0; i < f->n_nodes && b->proc_mode != PROCS_LISTED; i++) {
        struct fab_node *n = &f->nodes[i];
        int proc;

        if (n->kind == FAB_HOST && (b->proc_mode == PROCS_PER_NODE || f->n_machines))
            continue;
        if (b->proc_mode == PROCS_PER_NODE)
            proc = add_proc(b, n->name, n->machine);
        else
            proc = proc_of_machine(b, n->machine);
        if (proc < 0)
            return proc;
        n->proc = (fab_id)proc;
    }
    for (unsigned i = 0; i < f->n_hosts; i++) {
        int rc = place_host(b, &f->nodes[f->hosts[i]]);

        if (rc)
            return rc;
    }
    return 0;
}

void procs_build(struct build *b)
{
    struct fabric *f = b->f;

    if (!f->procs)
        f->procs = build_alloc(b, FAB_MAX_PROCS, sizeof(*f->procs));
    if (!f->procs || place_nodes(b))
        return;
    check_machines(b);
    for (unsigned p = 0; p < f->n_procs; p++) {
        struct fab_proc *proc = &f->procs[p];

        proc->nodes = build_alloc(b, f->n_nodes, sizeof(*proc->nodes));
        for (unsigned i = 0; proc->nodes && i < f->n_nodes; i++)
            if (f->nodes[i].proc == p && !f->nodes[i].outside)
                proc->nodes[proc->n_nodes++] = (fab_id)i;
    }
}
