/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /trib/node: takes a node's links down or up, or makes it forget its groups. Every process takes a change
 * of links, because all reroute; only the process that runs a node can make it forget.
 */
#include "base/nearest.h"
#include "io/loop_impl.h"
#include "io/telemetry/telemetry_link.h"

#include <rte_telemetry.h>
#include <stdio.h>
#include <string.h>

static unsigned links_of(const struct fab_node *n)
{
    unsigned links = 0;

    for (uint16_t p = 0; p < n->n_ports; p++)
        links += n->ports[p].link != FAB_NONE;
    return links;
}

static void telemetry_node_show(struct loop *l, const struct fab_node *n, struct rte_tel_data *d)
{
    unsigned down = 0, links = links_of(n);
    char line[RTE_TEL_MAX_STRING_LEN];

    for (uint16_t p = 0; p < n->n_ports; p++)
        down += n->ports[p].link != FAB_NONE && !net_link_up(loop_net(l), n->ports[p].link);
    snprintf(line, sizeof(line), "%s: %u links, %u down", n->name, links, down);
    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    rte_tel_data_add_array_string(d, line);
}

static void set_links(struct loop *l, uint16_t node, bool up, struct rte_tel_data *d)
{
    const struct fab_node *n = &loop_fabric(l)->nodes[node];

    if (net_set_node(loop_net(l), node, up, net_now(loop_net(l)))) {
        telemetry_say(d, "error", "no memory to change its links");
        return;
    }
    for (uint16_t p = 0; p < n->n_ports; p++)
        if (n->ports[p].link != FAB_NONE)
            telemetry_link_changed(l, n->ports[p].link, up);
    telemetry_node_show(l, n, d);
}

static void telemetry_node_forget(struct loop *l, uint16_t node, struct rte_tel_data *d)
{
    const struct fab_node *n = &loop_fabric(l)->nodes[node];

    if (n->kind != FAB_SWITCH)
        telemetry_say(d, "error", "found a host, expected a switch to restart");
    else if (!net_node(loop_net(l), node))
        telemetry_say(d, "elsewhere", n->name);
    else if (net_restart(loop_net(l), node, net_now(loop_net(l))))
        telemetry_say(d, "error", "no memory to restart it");
    else
        telemetry_node_show(l, n, d);
}

void telemetry_node(struct loop *l, const char *params, struct rte_tel_data *d)
{
    const struct fabric *f = loop_fabric(l);
    const char *word = params ? strchr(params, ',') : NULL;
    char name[FAB_NAME + 8], why[256], hint[FABRIC_HINT];
    const struct fab_node *n;
    uint16_t node;

    snprintf(name, sizeof(name), "%.*s", params ? (int)strcspn(params, ",") : 0,
             params ? params : "");
    n = fabric_node(f, name);
    if (!n) {
        nearest_hint(fabric_near_node(f, name, false), hint, sizeof(hint));
        snprintf(why, sizeof(why), "found %.32s, expected a node that trib plan shows%s", name,
                 hint);
        telemetry_say(d, "error", why);
        return;
    }
    node = fabric_node_index(f, n);
    if (!word)
        telemetry_node_show(l, n, d);
    else if (!strcmp(word, ",down") || !strcmp(word, ",up"))
        set_links(l, node, word[1] == 'u', d);
    else if (!strcmp(word, ",forget"))
        telemetry_node_forget(l, node, d);
    else
        telemetry_say(d, "error", "expected down, up or forget");
}
