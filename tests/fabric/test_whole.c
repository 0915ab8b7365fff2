/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole fabrics as they are computed from whole/NAME.conf, each field of every node, port, link, route, tree, path and group: what
 * whole/expected/NAME says. Routes with a link that is down, too.
 */
#include "fabric/link_terms.h"
#include "fabric/routing/reroute.h"
#include "fabric/tree_rails.h"
#include "fabric/tree_rate.h"
#include "tests/fabric/load.h"
#include "tests/support/expected.h"

#include <errno.h>

#define MINE "tests/fabric/whole/"

/* -1: FAB_NONE. */
static int id(fab_id i)
{
    return i == FAB_NONE ? -1 : (int)i;
}

static const char *name_of(const struct fabric *f, fab_id node)
{
    return node == FAB_NONE ? "-" : f->nodes[node].name;
}

static void dump_reduce(const struct fab_reduce *r, FILE *out)
{
    if (r->on)
        fprintf(out,
                "  reduces: %u groups, %u slots, window %u, share %u, join %ld, memory %u, "
                "rounding %u seed %u%s\n",
                r->max_groups, r->max_slots, r->window, r->host_permille, r->join_timeout_ps,
                r->memory, r->rounding, r->seed, r->arrival ? ", arrival" : "");
}

static void dump_node(const struct fabric *f, const struct fab_node *n, FILE *out)
{
    fprintf(out,
            "%s: kind %u %s%s, host %u, tier %u, ordinal %d, domain %d, network %u.%u, %s%s%u "
            "hosts, dest %u, proc %d, machine %d, ip %08x\n",
            n->name, (unsigned)n->kind, fab_role_name(n->role), n->outside ? " outside" : "",
            n->host_index, n->tier, id(n->ordinal), id(n->domain), n->kind ? n->network : 0u,
            n->kind ? n->network_index : 0u, n->multimem ? "multimem, " : "",
            n->cut_through ? "cuts through, " : "", n->n_hosts, n->dest, id(n->proc),
            id(n->machine), n->ip);
    dump_reduce(&n->reduce, out);
    for (unsigned p = 0; p < n->n_ports; p++) {
        const struct fab_port *q = &n->ports[p];

        fprintf(out, "  :%u link %d to %s:%d, ordinal %u, %lu b/s, %ld ps%s%s%s", p, id(q->link),
                name_of(f, q->peer_node), id(q->peer_port), q->ordinal, q->rate_bps, q->latency_ps,
                q->flood ? ", flood" : "", *q->external ? ", " : "", q->external);
        if (n->kind == FAB_HOST)
            fprintf(out, ", ip %08x%s", n->ip_of_port[p],
                    fabric_port_is_nvlink(f, n, p) ? ", nvlink" : "");
        fputc('\n', out);
    }
}

static void dump_links(const struct fabric *f, FILE *out)
{
    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];

        fprintf(out,
                "%s: %u:%u %u:%u, %u lanes, %lu b/s, %ld ps, %lu B, %u frames, ecn %lu %lu %g%s, "
                "%g %g %g %g %ld%s\n",
                l->name, l->a, l->a_port, l->b, l->b_port, l->lanes, l->rate_bps, l->latency_ps,
                l->buffer_bytes, l->buffer_pkts, l->ecn_bytes, l->ecn_max_bytes, l->ecn_prob,
                l->pfc ? ", pfc" : "", l->loss, l->dup, l->reorder, l->corrupt, l->jitter_ps,
                link_terms_fixed(f, i) ? ", fixed" : "");
    }
}

/* Next hops to each address, and those that a flow of each host takes. */
static void dump_routes(const struct fabric *f, FILE *out)
{
    for (unsigned u = 0; u < f->n_nodes; u++) {
        fprintf(out, "from %s:", f->nodes[u].name);
        for (unsigned d = 0; d < f->n_dests; d++) {
            fab_id port[FAB_MAX_PORTS];
            unsigned n = fabric_hops(f, (fab_id)u, d, port, FAB_MAX_PORTS);

            fprintf(out, " %s:%u=", f->nodes[f->dests[d].node].name, f->dests[d].port);
            for (unsigned i = 0; i < n; i++)
                fprintf(out, "%s%u", i ? "," : "", port[i]);
            for (unsigned h = 0; h < f->n_hosts && n > 1; h++)
                fprintf(out, "%c%d", h ? ' ' : '/',
                        id(fabric_next_port(f, (fab_id)u, (int)d, h * 0x01234567u,
                                            f->nodes[f->hosts[h]].ip)));
        }
        fputc('\n', out);
    }
}

static void dump_pairs(const struct fabric *f, FILE *out)
{
    for (unsigned a = 0; a < f->n_hosts; a++)
        for (unsigned z = 0; z < f->n_hosts; z++) {
            struct fab_channel ch[FAB_MAX_HOST_PORTS];
            uint32_t d[32];
            unsigned n = fabric_channels(f, a, z, ch, FAB_MAX_HOST_PORTS),
                     hops = fabric_path(f, f->hosts[a], f->hosts[z], d, 32);

            fprintf(out, "%s to %s:", name_of(f, f->hosts[a]), name_of(f, f->hosts[z]));
            for (unsigned i = 0; i < n; i++)
                fprintf(out, " %u-%u by %lu", ch[i].port_a, ch[i].port_b, ch[i].rate_bps);
            fputs("; way", out);
            for (unsigned i = 0; i < hops; i++)
                fprintf(out, " %u", d[i]);
            for (unsigned i = 0; i < n; i++) {
                hops = fabric_path_ports(f, f->hosts[a], ch[i].port_a, f->hosts[z], ch[i].port_b, d,
                                         32);
                fputs(" |", out);
                for (unsigned h = 0; h < hops; h++)
                    fprintf(out, " %u.%ld", d[h], fabric_latency(f, d[h]) / 1000);
            }
            fputc('\n', out);
        }
}

/* Groups of all hosts, of each pair, and of every second host, with two ranks each. */
static void dump_groups(const struct fabric *f, const struct fab_tree *t, FILE *out)
{
    for (unsigned kind = 0; kind < f->n_hosts + 2u; kind++) {
        struct fab_members m = {.ranks_per_host = kind ? 1 : 2};
        fab_id top;

        for (unsigned h = 0; h < f->n_hosts; h++)
            if (!kind || (kind == 1 && h % 2) ||
                (kind > 1 && (h == kind - 2 || h == (kind - 1) % f->n_hosts)))
                for (unsigned r = 0; r < m.ranks_per_host; r++)
                    fab_members_add(&m, h * m.ranks_per_host + r);
        top = fab_group_top(f, t, &m);
        fprintf(out, "  group %u of %u: top %s;", kind, fab_members_count(&m), name_of(f, top));
        for (unsigned u = 0; u < f->n_nodes && top != FAB_NONE; u++) {
            struct fab_child c[128];
            unsigned n = fab_group_children(f, t, (fab_id)u, &m, c, 128);

            if (n)
                fprintf(out, " %s:", f->nodes[u].name);
            for (unsigned i = 0; i < n; i++)
                fprintf(out, " %s%s%d/%u", name_of(f, c[i].node), c[i].is_member ? "." : "",
                        id(c[i].member), c[i].first_member);
        }
        fputc('\n', out);
    }
}

static void dump_trees(const struct fabric *f, FILE *out)
{
    struct fab_members all = {.ranks_per_host = 1};
    fab_id tree[FAB_TREES_AT_ONCE];
    uint64_t bps[FAB_TREES_AT_ONCE];
    unsigned n = 0;

    for (unsigned h = 0; h < f->n_hosts; h++)
        fab_members_add(&all, h);
    for (unsigned i = 0; i < f->n_trees; i++) {
        const struct fab_tree *t = &f->trees[i];

        fprintf(out, "tree %u: root %s, nth %u, first %u, turn %u, domain %d, depth %u:", t->id,
                name_of(f, t->root), t->nth, t->first, t->turn, id(t->domain), t->depth);
        for (unsigned u = 0; u < f->n_nodes; u++)
            fprintf(out, " %s>%s", f->nodes[u].name, name_of(f, t->parent[u]));
        for (unsigned h = 0; h < f->n_hosts; h++)
            fprintf(out, " %d/%d", id(t->port[h]), id(fabric_tree_port(f, t, h)));
        fputc('\n', out);
        dump_groups(f, t, out);
        if (n < FAB_TREES_AT_ONCE && fab_group_top(f, t, &all) != FAB_NONE)
            tree[n++] = (fab_id)i;
    }
    if (n && fabric_tree_rates(f, tree, n, &all, bps))
        for (unsigned i = 0; i < n; i++)
            fprintf(out, "tree %u at once: %lu b/s\n", tree[i], bps[i]);
}

static void dump_rails(const struct fabric *f, FILE *out)
{
    fab_id host[64], place[64], tree[64];
    unsigned choice[64], n_trees = f->n_trees < 64 ? f->n_trees : 64;

    for (unsigned rails = 1; rails <= 3; rails++) {
        for (unsigned h = 0; h < f->n_hosts; h++)
            host[h] = (fab_id)h, place[h] = (fab_id)(h % rails);
        for (unsigned i = 0; i < n_trees; i++)
            tree[i] = (fab_id)i;
        assert_int_equal(fabric_rail_trees(f, tree, n_trees,
                                           &(struct fab_rails){f->n_hosts, host, place}, rails,
                                           choice),
                         0);
        fprintf(out, "%u rails:", rails);
        for (unsigned i = 0; i < rails; i++)
            fprintf(out, " %u", choice[i]);
        fputc('\n', out);
    }
}

static void dump_notices(const struct fabric *f, FILE *out)
{
    static const uint64_t bytes[] = {0, 1, 512, 4096, 65536, 1 << 20};

    fprintf(out, "longest notice %ld ps\n", fabric_longest_notice_ps(f));
    for (unsigned h = 0; h < f->n_hosts && h < 2; h++) {
        const struct fab_node *n = &f->nodes[f->hosts[h]];

        for (unsigned p = 0; p < n->n_ports; p++) {
            struct fab_notice k = fabric_notice(f, n, p);

            fprintf(out,
                    "%s:%u: gpu %ld, step %ld, ll %ld %lu, ll128 %ld %lu, %lu of %lu b/s:", n->name,
                    p, k.gpu_ps, k.step_ps, k.ll.step_ps, k.ll.rate_bps, k.ll128.step_ps,
                    k.ll128.rate_bps, k.rate_bps, k.path_bps);
            for (unsigned i = 0; i < LEN(bytes); i++) {
                int64_t free_ps = 0, a = fab_noticed_ps(&k, bytes[i], false, 1000, &free_ps),
                        z = fab_noticed_ps(&k, bytes[i], true, 2000, &free_ps);

                fprintf(out, " %ld %ld %ld%s", a, z, free_ps,
                        fab_notice_is_long(&k, bytes[i]) ? " long" : "");
            }
            fputc('\n', out);
        }
    }
}

static void dump_levels(const struct fabric *f, FILE *out)
{
    struct fab_level lv[FAB_MAX_LEVELS];
    unsigned n = fabric_levels(f, lv, FAB_MAX_LEVELS);

    for (unsigned i = 0; i < n; i++)
        fprintf(out,
                "level %u %s: %u groups, %u switches, %u cables, %u hosts, %u members, %lu %lu %lu "
                "b/s, island %u %u %u %lu b/s\n",
                lv[i].tier, fab_role_name(lv[i].role), lv[i].groups, lv[i].switches, lv[i].cables,
                lv[i].hosts, lv[i].members, lv[i].member_bps, lv[i].total_bps, lv[i].bisection_bps,
                lv[i].island_hosts, lv[i].island_local, lv[i].island_stride, lv[i].island_bps);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(fabric_levels(f, lv, i), i);
}

static void dump_spread(const struct fabric *f, FILE *out)
{
    for (unsigned i = 0; i < f->n_procs; i++) {
        fprintf(out, "process %s on %d:", f->procs[i].name, id(f->procs[i].machine));
        for (unsigned k = 0; k < f->procs[i].n_nodes; k++)
            fprintf(out, " %s", name_of(f, f->procs[i].nodes[k]));
        fputc('\n', out);
    }
    for (unsigned i = 0; i < f->n_machines; i++) {
        const struct fab_machine *m = &f->machines[i];

        fprintf(out, "machine %s: %08x port %u,", m->name, m->ip, m->port);
        for (unsigned k = 0; k < m->n_devices; k++)
            fprintf(out, " %s", m->device[k]);
        fputc('\n', out);
    }
    for (unsigned i = 0; i < f->n_access; i++) {
        const struct fab_access *a = &f->access[i];

        fprintf(out, "access of %s %s:%s", a->group ? "group" : "user", a->name,
                a->all ? " all" : "");
        for (unsigned k = 0; k < a->n_hosts; k++)
            fprintf(out, " %s", name_of(f, a->hosts[k]));
        fputc('\n', out);
    }
}

static void dump_costs(const struct fabric *f, FILE *out)
{
    const struct fab_costs *c = &f->costs;
    const struct fab_path_costs *path[] = {&c->nvlink, &c->network};

    fprintf(out, "costs %ld %ld %ld, multimem %ld %u %u, aggregate %ld %u %lu;", c->gpu_ps,
            c->hca_ps, c->switch_ps, c->mm_launch_ps, c->mm_load, c->mm_store, c->agg_ps,
            c->agg_bytes, c->agg_until_bytes);
    for (unsigned i = 0; i < 2; i++)
        fprintf(out, " %ld %ld ll %ld %lu ll128 %ld %lu;", path[i]->launch_ps, path[i]->step_ps,
                path[i]->ll.step_ps, path[i]->ll.rate_bps, path[i]->ll128.step_ps,
                path[i]->ll128.rate_bps);
    for (unsigned b = 0; b < 4; b++)
        fprintf(out, " %ld", fab_aggregate_ps(c, b * 256 + (b == 3)));
    fprintf(out, " %ld\n", fab_stretch(1000000, c->mm_load));
}

static void dump(const struct fabric *f, FILE *out)
{
    const struct fab_transport *t = &f->transport;
    const struct fab_dcqcn *d = &f->dcqcn;

    fprintf(out,
            "%s (%s): %u nodes, %u hosts, %u switches, %u links, %u dests, %u trees, %u procs, %u "
            "domains, %u networks\n",
            f->name, f->path, f->n_nodes, f->n_hosts, f->n_switches, f->n_links, f->n_dests,
            f->n_trees, f->n_procs, f->n_domains, f->n_networks);
    fprintf(out, "mtu %u, dilation %u, ecmp %u, watchdog %ld, slots %u, multicast %u, key \"%s\"\n",
            f->mtu, f->dilation, (unsigned)f->ecmp, f->pfc_watchdog_ps, f->slots_per_host,
            f->multicast_per_host, f->trunk_key);
    fprintf(out, "window %u, timeout %u, retry %u%s, round trip %ld, stored %ld\n", t->window,
            t->ack_timeout, t->retry_count, t->early_slots ? ", early" : "", t->round_trip_ps,
            t->stored_round_trip_ps);
    if (d->on)
        fprintf(out, "dcqcn %ld %ld %ld %u %ld %lu %u %lu %lu\n", d->min_time_between_cnps_ps,
                d->rate_reduce_monitor_period_ps, d->dce_tcp_rtt_ps, d->dce_tcp_g,
                d->rpg_time_reset_ps, d->rpg_byte_reset, d->rpg_threshold, d->rpg_ai_bps,
                d->rpg_hai_bps);
    dump_costs(f, out);
    for (unsigned i = 0; i < f->n_nodes; i++)
        dump_node(f, &f->nodes[i], out);
    dump_links(f, out);
    for (unsigned i = 0; i < f->n_networks; i++)
        fprintf(out, "network %u from %u: %s\n", i, f->networks[i],
                name_of(f, f->by_network[f->networks[i]]));
    for (unsigned i = 0; i < f->n_dests; i++)
        assert_int_equal(fabric_dest_of_ip(f, f->dests[i].ip), i);
    dump_routes(f, out);
    dump_pairs(f, out);
    dump_trees(f, out);
    dump_rails(f, out);
    dump_levels(f, out);
    dump_notices(f, out);
    dump_spread(f, out);
}

static void fabrics(void **state)
{
    static const char *const names[] = {"pods", "rails", "odd", "machines", "single"};

    (void)state;
    for (unsigned i = 0; i < LEN(names); i++) {
        struct expected e;
        struct fabric *f;
        char path[96];

        snprintf(path, sizeof(path), MINE "%s.conf", names[i]);
        f = load_file(path);
        dump(f, expected_begin(&e));
        fabric_free(f);
        snprintf(path, sizeof(path), MINE "expected/%s", names[i]);
        expected_same(&e, path);
    }
}

/* As many nodes as are allocated at once, so that sanitizers see any access beside them. */
static void sixty_four_nodes(void **state)
{
    struct fabric *f =
        load_text(REDUCE LINKS "ecmp = \"balanced\"; single_switch = { hosts = 63; };");
    FILE *out = fopen("/dev/null", "w");

    (void)state;
    assert_int_equal(f->n_nodes, 64);
    assert_non_null(out);
    dump(f, out);
    fclose(out);
    assert_null(fabric_node(f, "h63"));
    assert_int_equal(fabric_link_by_name(f, "h63-switch0"), -ENOENT);
    fabric_free(f);
}

/* A link between switches is left out, with its ports; one of a host is not. */
static void without_links(void **state)
{
    struct fabric *f = load_file(MINE "odd.conf");
    bool *down = calloc(f->n_links, sizeof(*down));
    struct expected e;

    (void)state;
    expected_begin(&e);
    for (unsigned i = 0; i < f->n_links; i++) {
        struct fabric *less;

        down[i] = true;
        less = fabric_without(f, down);
        assert_non_null(less);
        fprintf(e.out, "without %s\n", f->links[i].name);
        dump_routes(less, e.out);
        for (unsigned u = 0; u < less->n_nodes; u++)
            for (unsigned p = 0; p < less->nodes[u].n_ports; p++) {
                assert_int_equal(less->nodes[u].ports[p].link, f->nodes[u].ports[p].link);
                if (less->nodes[u].ports[p].flood != f->nodes[u].ports[p].flood)
                    fprintf(e.out, "%s:%u flood %u\n", f->nodes[u].name, p,
                            less->nodes[u].ports[p].flood);
            }
        fabric_free(less);
        down[i] = i % 3 == 1;
    }
    free(down);
    fabric_free(f);
    expected_same(&e, MINE "expected/odd.without");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fabrics), cmocka_unit_test(without_links),
                                       cmocka_unit_test(sixty_four_nodes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
