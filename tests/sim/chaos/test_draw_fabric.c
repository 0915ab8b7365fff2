/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fabrics that chaos draws: each is what its shape says, sizes go from end to end of their ranges, and kinds
 * are as frequent as they should be, over many draws of fixed seeds.
 */
#include "tests/sim/chaos/draws.h"

#include <errno.h>
#include <stdlib.h>

#define CASES   4000u
#define PRESETS 10u

static const struct chaos_cfg cfg = {.conf_dir = "conf"};

struct seen {
    unsigned uneven, preset, single, leaf_spine, node, tiers, made, scarce, hash, marked, small;
    unsigned of_preset[PRESETS], of_mtu[5];
    char names[PRESETS][64];
    struct range hosts, leaves, spines, each, latency, gpus, links, wide, under, groups, slots,
        windows;
    struct range u_leaves, u_spines, u_hosts, u_ports, u_groups;
    unsigned u_scarce, u_skipped, u_could;
};

static const struct fab_node *switch_of(const struct fabric *f, unsigned i)
{
    return &f->nodes[f->switches[i]];
}

static void see_preset(struct seen *s, const struct chaos_case *k)
{
    s->preset++;
    assert_true(strlen(k->conf) > 5 && !strchr(k->conf, '/') && !k->conf_text && !k->uneven);
    assert_string_equal(k->shape, k->fab->name);
    for (unsigned i = 0; i < PRESETS; i++)
        if (!*s->names[i] || !strcmp(s->names[i], k->conf)) {
            strcpy(s->names[i], k->conf);
            s->of_preset[i]++;
            return;
        }
    fail_msg("%s: one preset more", k->conf);
}

static void see_made(struct seen *s, const struct chaos_case *k, unsigned mtu)
{
    const struct fab_reduce *q = &switch_of(k->fab, 0)->reduce;

    s->made++;
    assert_true(k->conf_text && !k->uneven && k->fab->dilation == 2);
    assert_string_equal(k->fab->name, "chaos");
    assert_int_equal(k->fab->mtu, mtu);
    for (unsigned i = 0; i < 5; i++)
        s->of_mtu[i] += mtu == 256u << i;
    s->hash += k->fab->ecmp == FAB_ECMP_HASH;
    s->marked += strstr(k->conf_text, "dcqcn = { }; link_defaults = { buffer = \"64KiB\"; ecn = "
                                      "\"8KiB\"; };") != NULL;
    s->small += strstr(k->conf_text, "link_defaults = { buffer = \"16KiB\"; };") != NULL;
    assert_int_equal(q->window, 256);
    if (q->max_slots == 4096) {
        assert_int_equal(q->max_groups, 4);
        return;
    }
    s->scarce++;
    range_add(&s->groups, q->max_groups);
    assert_int_equal(q->max_slots % 64, 0);
    range_add(&s->slots, q->max_slots / 64.);
}

static void see_tiers(struct seen *s, const struct chaos_case *k, unsigned wide, unsigned hosts)
{
    const struct fab_reduce *core = &k->fab->nodes[node(k->fab, "core0")].reduce;
    unsigned slots = switch_of(k->fab, 0)->reduce.max_slots;

    s->tiers++;
    range_add(&s->wide, wide);
    range_add(&s->under, hosts / 4.);
    assert_true(k->fab->n_hosts == hosts && k->fab->n_switches == 4 + 2 * wide + 1);
    assert_int_equal(k->fab->n_links, hosts + 4 * wide + 2 * wide);
    assert_int_equal(core->max_groups, 4);
    assert_int_equal(core->max_slots, slots == 4096 ? 4096 : slots / 8);
    if (slots == 4096)
        range_add(&s->windows, log2(core->window));
    else
        assert_true(core->window <= core->max_slots && core->window >= 8);
    for (unsigned l = 0; l < 4; l++)
        for (unsigned w = 0; w < wide; w++) {
            char name[32];
            bool found = false;

            snprintf(name, sizeof(name), "leaf%u", l);
            for (unsigned i = 0; i < k->fab->n_links; i++)
                found |= k->fab->links[i].a == node(k->fab, name) &&
                         !strcmp(k->fab->nodes[k->fab->links[i].b].name,
                                 l / 2 ? (w           ? "spine3"
                                          : wide == 2 ? "spine2"
                                                      : "spine1")
                                       : (w ? "spine1" : "spine0"));
            assert_true(found);
        }
}

static void see_uneven(struct seen *s, const struct chaos_case *k)
{
    unsigned leaves, spines, hosts, ports, of_hosts = 0;
    const struct fab_reduce *q = &switch_of(k->fab, 0)->reduce;

    s->uneven++;
    assert_true(k->uneven && k->conf_text);
    assert_int_equal(sscanf(k->shape, "uneven, %u leaves, %u spines, %u hosts with %u ports",
                            &leaves, &spines, &hosts, &ports),
                     4);
    assert_true(k->fab->n_hosts == hosts && k->fab->n_switches == leaves + spines);
    assert_int_equal(k->fab->n_links, ports + leaves * spines);
    assert_true(spines <= (leaves > 1 ? 2 : 1));
    for (unsigned h = 0; h < hosts; h++)
        of_hosts += k->fab->nodes[k->fab->hosts[h]].n_ports;
    assert_int_equal(of_hosts, ports);
    range_add(&s->u_leaves, leaves);
    range_add(&s->u_hosts, hosts);
    if (leaves > 1)
        range_add(&s->u_spines, spines);
    s->u_scarce += q->max_groups == 2;
    assert_true(q->max_groups == 2 || (q->max_groups == 8 && q->max_slots == 4096));
    assert_true(k->fab->mtu >= 256 && k->fab->mtu <= 4096 && !(k->fab->mtu & (k->fab->mtu - 1)));
    if (spines && leaves > 1) {
        s->u_could += hosts * (leaves - 1);
        s->u_skipped += hosts * leaves - ports;
    } else {
        assert_int_equal(ports, hosts * (leaves < 2 ? (spines ? ports / hosts : 2) : leaves));
    }
}

static void see(struct seen *s, const struct chaos_case *k)
{
    unsigned a, b, c, mtu;

    if (!strncmp(k->shape, "uneven", 6)) {
        see_uneven(s, k);
    } else if (sscanf(k->shape, "one switch, %u hosts, mtu %u", &a, &mtu) == 2) {
        see_made(s, k, mtu);
        s->single++;
        range_add(&s->hosts, a);
        assert_true(k->fab->n_hosts == a && k->fab->n_switches == 1);
    } else if (sscanf(k->shape, "%u leaves, %u spines, %u hosts a leaf, mtu %u", &a, &b, &c,
                      &mtu) == 4) {
        const struct fab_link *l = &k->fab->links[k->fab->n_links - 1];

        see_made(s, k, mtu);
        s->leaf_spine++;
        range_add(&s->leaves, a);
        range_add(&s->spines, b);
        range_add(&s->each, c);
        range_add(&s->latency, (double)l->latency_ps / PS_PER_NS);
        assert_true(k->fab->n_hosts == a * c && k->fab->n_switches == a + b);
    } else if (sscanf(k->shape, "a node of %u GPUs, mtu %u", &a, &mtu) == 2) {
        const char *planes = strstr(k->conf_text, "planes = ( ");

        see_made(s, k, mtu);
        s->node++;
        range_add(&s->gpus, a);
        range_add(&s->links, atoi(planes + 11));
        assert_true(k->fab->n_hosts == a && !strncmp(planes + 12, ", 2 );", 6));
    } else if (sscanf(k->shape, "three tiers, %u spines a pod, %u hosts, mtu %u", &a, &b, &mtu) ==
               3) {
        see_made(s, k, mtu);
        see_tiers(s, k, a, b);
    } else {
        see_preset(s, k);
    }
}

static void fabrics_are_as_they_say(void **state)
{
    static struct seen s;

    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        struct chaos_case k = {.cfg = &cfg};
        char why[CHAOS_TEXT] = "";

        draws_of(&k, i);
        if (chaos_draw_fabric(&k, why))
            fail_msg("case %u: %s", i, why);
        assert_ptr_equal(k.fab, k.own);
        see(&s, &k);
        fabric_free(k.own);
        free(k.conf_text);
    }
    share("uneven", s.uneven, CASES, 1. / 10);
    share("presets", s.preset, CASES - s.uneven, 1. / 2);
    for (unsigned i = 0; i < PRESETS; i++)
        share(s.names[i], s.of_preset[i], s.preset, 1. / PRESETS);
    share("one switch", s.single, s.made, 1. / 5);
    share("leaves and spines", s.leaf_spine, s.made, 1. / 5);
    share("a node", s.node, s.made, 1. / 5);
    share("three tiers", s.tiers, s.made, 2. / 5);
    share("scarce", s.scarce, s.made, 1. / 4);
    share("by hash", s.hash, s.made, 1. / 2);
    share("marked", s.marked, s.made, 1. / 4);
    share("small queues", s.small, s.made, 1. / 4);
    for (unsigned i = 0; i < 5; i++)
        share("mtu", s.of_mtu[i], s.made, 1. / 5);
    range_is("hosts", &s.hosts, 2, 16);
    range_is("leaves", &s.leaves, 2, 4);
    range_is("spines", &s.spines, 1, 3);
    range_is("hosts of a leaf", &s.each, 1, 4);
    assert_true(s.latency.lowest >= 100 && s.latency.lowest < 120 && s.latency.highest > 980 &&
                s.latency.highest <= 999);
    range_is("GPUs", &s.gpus, 2, 8);
    range_is("links", &s.links, 1, 5);
    range_is("spines of a pod", &s.wide, 1, 2);
    range_is("hosts under a leaf", &s.under, 1, 3);
    range_is("windows", &s.windows, 3, 8);
    range_is("groups", &s.groups, 1, 3);
    range_is("slots", &s.slots, 4, 9);
    range_is("leaves of the uneven", &s.u_leaves, 1, 3);
    range_is("their hosts", &s.u_hosts, 2, 6);
    range_is("their spines", &s.u_spines, 0, 2);
    share("scarce uneven", s.u_scarce, s.uneven, 1. / 4);
    share("skipped links", s.u_skipped, s.u_could, 1. / 6);
}

/* A fabric that is given is taken, and its conf named so that it is no preset. */
static void a_given_fabric_is_taken(void **state)
{
    struct fabric *f = load_file("conf/two-hosts.conf");
    struct chaos_cfg given = {.fab = f, .conf = "mine.conf"};
    struct chaos_case k = {.cfg = &given};
    char why[CHAOS_TEXT] = "";

    (void)state;
    assert_int_equal(chaos_draw_fabric(&k, why), 0);
    assert_true(k.fab == f && !k.own && !k.conf_text);
    assert_string_equal(k.conf, "./mine.conf");
    assert_string_equal(k.shape, "two-hosts");
    given.conf = "conf/two-hosts.conf";
    assert_int_equal(chaos_draw_fabric(&k, why), 0);
    assert_string_equal(k.conf, "conf/two-hosts.conf");
    fabric_free(f);
}

static void presets_that_are_not_there(void **state)
{
    const struct chaos_cfg nowhere = {.conf_dir = "nowhere"};
    unsigned missing = 0;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct chaos_case k = {.cfg = &nowhere};
        char why[CHAOS_TEXT] = "";

        draws_of(&k, i);
        if (chaos_draw_fabric(&k, why)) {
            missing++;
            assert_null(k.fab);
            assert_memory_equal(why, "nowhere/", 8);
            assert_non_null(strstr(why, ".conf:0: found no readable file"));
        }
        fabric_free(k.own);
        free(k.conf_text);
    }
    assert_true(missing > 4 && missing < 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fabrics_are_as_they_say),
        cmocka_unit_test(a_given_fabric_is_taken),
        cmocka_unit_test(presets_that_are_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
