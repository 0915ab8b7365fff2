/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of conf/ against the figures of the hardware that they model. Ids (F1 ...) are rows of
 * the project's table of reference figures. */
#include "tests/fabric/load.h"

#include <stdlib.h>

#define GB 8000000000ull /* 1 GB/s in bits per second */

struct level {
    enum fab_role role;
    unsigned groups, switches, cables, hosts, members;
    uint64_t member_gb, total_gb, bisection_gb;
};

#define NV FAB_ROLE_NVSWITCH
static const struct preset {
    const char *name;
    unsigned hosts, switches, host_ports;
    struct level level[4];
} presets[] = {
    {"a100-node", 8, 6 + 1, 7, {{NV, 1, 6, 96, 8, 8, 300, 2400, 2400}}},  /* F1 */
    {"h100-node", 8, 4 + 1, 5, {{NV, 1, 4, 144, 8, 8, 450, 3600, 3600}}}, /* F2, F10 */
    {"b200-node", 8, 2 + 1, 3, {{NV, 1, 2, 144, 8, 8, 900, 7200, 7200}}}, /* F3 */
    {"gb200-nvl72",
     72,
     18 + 1,
     19,
     {{NV, 1, 18, 1296, 72, 72, 900, 64800, 64800}, /* F3, F5 */
      {FAB_ROLE_LEAF, 1, 1, 72, 72, 1, 3600, 3600, 3600}}},
    {"h100-su",
     256,
     128 + 8 + 4,
     5, /* F5, F11 */
     {{NV, 32, 128, 4608, 8, 8, 450, 3600, 3600},
      {FAB_ROLE_LEAF, 1, 8, 256, 256, 32, 400, 12800, 12800},
      {FAB_ROLE_SPINE, 1, 4, 256, 256, 1, 12800, 12800, 12800}}},
    {"h100-superpod-1024",
     1024,
     560,
     5, /* F12: 512 + 32 + 16 */
     {{NV, 128, 512, 18432, 8, 8, 450, 3600, 3600},
      {FAB_ROLE_LEAF, 4, 32, 1024, 256, 32, 400, 12800, 12800},
      {FAB_ROLE_SPINE, 1, 16, 1024, 1024, 4, 12800, 51200, 51200}}},
    {"h100-superpod-2048",
     2048,
     1024 + 64 + 32,
     5, /* F13 */
     {{NV, 256, 1024, 36864, 8, 8, 450, 3600, 3600},
      {FAB_ROLE_LEAF, 8, 64, 2048, 256, 32, 400, 12800, 12800},
      {FAB_ROLE_SPINE, 1, 32, 2048, 2048, 8, 12800, 102400, 102400}}},
    {"h100-superpod-4096",
     4096,
     2048 + 128 + 128 + 64,
     5, /* F14 */
     {{NV, 512, 2048, 73728, 8, 8, 450, 3600, 3600},
      {FAB_ROLE_LEAF, 16, 128, 4096, 256, 32, 400, 12800, 12800},
      {FAB_ROLE_SPINE, 4, 128, 4096, 1024, 4, 12800, 51200, 51200},
      {FAB_ROLE_CORE, 1, 64, 4096, 4096, 4, 51200, 204800, 204800}}},
    {"gb200-superpod-576",
     576,
     144 + 18 + 16,
     19, /* F15 */
     {{NV, 8, 144, 10368, 72, 72, 900, 64800, 64800},
      {FAB_ROLE_LEAF, 1, 18, 576, 576, 8, 3600, 28800, 28800}}},
    {"npu-mesh-8", 8, 0, 7, {{FAB_ROLE_HOST, 1, 0, 28, 8, 8, 392, 3136, 1792}}},  /* F17 */
    {"npu-star-8", 8, 1, 1, {{FAB_ROLE_SWITCH, 1, 1, 8, 8, 8, 392, 3136, 3136}}}, /* F17 */
    {"rail-2x4",
     8,
     8 + 4 + 2,
     5,
     {{NV, 2, 8, 144, 4, 4, 450, 1800, 1800},
      {FAB_ROLE_LEAF, 1, 4, 8, 8, 2, 200, 400, 400},
      {FAB_ROLE_SPINE, 1, 2, 8, 8, 1, 400, 400, 400}}},
    {"rail-2x8",
     16,
     8 + 8 + 2,
     5,
     {{NV, 2, 8, 288, 8, 8, 450, 3600, 3600},
      {FAB_ROLE_LEAF, 1, 8, 16, 16, 2, 400, 800, 800},
      {FAB_ROLE_SPINE, 1, 2, 16, 16, 1, 800, 800, 800}}},
    {"rail-4x8",
     32,
     16 + 8 + 4,
     5,
     {{NV, 4, 16, 576, 8, 8, 450, 3600, 3600},
      {FAB_ROLE_LEAF, 1, 8, 32, 32, 4, 400, 1600, 1600},
      {FAB_ROLE_SPINE, 1, 4, 32, 32, 1, 1600, 1600, 1600}}},
};

static struct fabric *load_preset(const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "conf/%s.conf", name);
    return load_file(path);
}

static void check_level(const struct preset *p, const struct level *want,
                        const struct fab_level *got)
{
    const struct level is = {got->role,
                             got->groups,
                             got->switches,
                             got->cables,
                             got->hosts,
                             got->members,
                             got->member_bps / GB,
                             got->total_bps / GB,
                             got->bisection_bps / GB};

    if (is.role != want->role || is.groups != want->groups || is.switches != want->switches ||
        is.cables != want->cables || is.hosts != want->hosts || is.members != want->members)
        fail_msg("%s, level %s: %u groups, %u switches, %u cables, %u hosts, %u members", p->name,
                 fab_role_name(want->role), is.groups, is.switches, is.cables, is.hosts,
                 is.members);
    if (got->member_bps % GB || is.member_gb != want->member_gb || is.total_gb != want->total_gb ||
        is.bisection_gb != want->bisection_gb)
        fail_msg("%s, level %s: %lu GB/s a member, %lu in all, bisection %lu", p->name,
                 fab_role_name(want->role), is.member_gb, is.total_gb, is.bisection_gb);
}

static void presets_have_the_counts_and_bandwidths_of_what_they_model(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LEN(presets); i++) {
        const struct preset *p = &presets[i];
        struct fabric *f = load_preset(p->name);
        struct fab_level lv[FAB_MAX_LEVELS];
        unsigned n = fabric_levels(f, lv, FAB_MAX_LEVELS);

        assert_string_equal(f->name, p->name);
        assert_int_equal(f->n_hosts, p->hosts);
        assert_int_equal(f->n_switches, p->switches);
        for (unsigned h = 0; h < f->n_hosts; h++)
            assert_int_equal(f->nodes[f->hosts[h]].n_ports, p->host_ports);
        for (unsigned l = 0; l < LEN(p->level) && p->level[l].groups; l++) {
            assert_true(l < n);
            check_level(p, &p->level[l], &lv[l]);
        }
        fabric_free(f);
    }
}

/* F2: a GPU's links are split 5, 4, 4, 5; no switch has more than its 64 ports. */
static void planes_of_an_h100_node_are_split_as_its_links_are(void **state)
{
    static const uint64_t gb[] = {125, 100, 100, 125, 50};
    struct fabric *f = load_preset("h100-node");
    struct fab_channel ch[8];

    (void)state;
    for (unsigned h = 0; h < 8; h++)
        for (unsigned p = 0; p < 5; p++)
            assert_int_equal(f->nodes[f->hosts[h]].ports[p].rate_bps, gb[p] * GB);
    assert_string_equal(f->nodes[f->nodes[f->hosts[3]].ports[2].peer_node].name, "n0s2");
    assert_int_equal(fabric_channels(f, 0, 7, ch, LEN(ch)), 4);
    for (unsigned c = 0; c < 4; c++) {
        assert_int_equal(ch[c].port_a, c);
        assert_int_equal(ch[c].port_b, c);
        assert_int_equal(ch[c].rate_bps, gb[c] * GB);
    }
    for (unsigned s = 0; s < 4; s++) {
        const struct fab_node *sw =
            fabric_node(f, (const char *[]){"n0s0", "n0s1", "n0s2", "n0s3"}[s]);
        unsigned lanes = 0;

        for (unsigned p = 0; p < sw->n_ports; p++)
            lanes += f->links[sw->ports[p].link].lanes;
        assert_int_equal(lanes, 8 * gb[s] / 25);
        assert_true(lanes <= 64);
        assert_true(sw->multimem);
        assert_true(sw->reduce.on);
    }
    fabric_free(f);
}

/* F11: NIC i of every node of a unit on its leaf i. */
static void rails_lead_to_the_leaf_of_their_number(void **state)
{
    struct fabric *f = load_preset("h100-superpod-1024");
    struct fab_channel ch[4];
    char name[FAB_NAME];

    (void)state;
    for (unsigned h = 0; h < f->n_hosts; h++) {
        snprintf(name, sizeof(name), "leaf%u", h / 256 * 8 + h % 8);
        assert_string_equal(f->nodes[f->nodes[f->hosts[h]].ports[4].peer_node].name, name);
        assert_int_equal(fabric_domain(f, h), h / 8);
    }
    assert_int_equal(fabric_channels(f, 3, 1003, ch, LEN(ch)), 1);
    assert_int_equal(ch[0].port_a, 4);
    assert_int_equal(ch[0].port_b, 4);
    fabric_free(f);
}

/* F12 to F14: 64 ports a switch, all of them in use. */
static void scale_out_switches_have_64_ports(void **state)
{
    static const char *const full[] = {"h100-superpod-1024", "h100-superpod-2048",
                                       "h100-superpod-4096"};

    (void)state;
    for (unsigned i = 0; i < LEN(full); i++) {
        struct fabric *f = load_preset(full[i]);

        for (unsigned s = 0; s < f->n_switches; s++)
            if (f->nodes[f->switches[s]].role != FAB_ROLE_NVSWITCH)
                assert_int_equal(f->nodes[f->switches[s]].n_ports, 64);
        fabric_free(f);
    }
}

/* A shift by whole nodes is what rings and exchanges across nodes do; with full bisection it needs
 * no link twice. */
static void balanced_paths_of_a_shift_by_nodes_never_share_a_link(void **state)
{
    static const struct {
        const char *name;
        unsigned gpus, shift[4];
    } rows[] = {{"h100-su", 8, {1, 7, 16, 31}},
                {"h100-superpod-1024", 8, {1, 32, 64, 77}},
                {"h100-superpod-2048", 8, {1, 32, 128, 201}},
                {"h100-superpod-4096", 8, {1, 32, 128, 333}},
                {"gb200-superpod-576", 72, {1, 3, 4, 7}},
                {"rail-4x8", 8, {1, 2, 3, 1}}};

    (void)state;
    for (unsigned r = 0; r < LEN(rows); r++) {
        struct fabric *f = load_preset(rows[r].name);
        uint8_t *load = calloc(2u * f->n_links, 1);
        uint32_t path[8];

        for (unsigned k = 0; k < 4; k++) {
            memset(load, 0, 2u * f->n_links);
            for (unsigned i = 0; i < f->n_hosts; i++) {
                unsigned j = (i + rows[r].shift[k] * rows[r].gpus) % f->n_hosts,
                         n = fabric_path(f, f->hosts[i], f->hosts[j], path, LEN(path));

                assert_in_range(n, 2, 6);
                for (unsigned h = 0; h < n; h++)
                    if (load[path[h]]++)
                        fail_msg("%s, shift by %u nodes: %s is used twice", rows[r].name,
                                 rows[r].shift[k], f->links[path[h] / 2].name);
            }
        }
        free(load);
        fabric_free(f);
    }
}

/* F17: the members of a group use the cables among themselves, 3 of 7 for 4, all for 8. */
static void a_group_in_a_mesh_uses_the_cables_among_its_members(void **state)
{
    struct fabric *mesh = load_preset("npu-mesh-8"), *star = load_preset("npu-star-8");
    struct fab_channel ch[8];

    (void)state;
    for (unsigned n = 2; n <= 8; n *= 2) {
        uint64_t sum = 0;
        uint32_t used = 0;

        for (unsigned j = 1; j < n; j++) {
            assert_int_equal(fabric_channels(mesh, 0, j, ch, LEN(ch)), 1);
            sum += ch[0].rate_bps;
            used |= 1u << ch[0].port_a;
            assert_int_equal(fabric_channels(star, 0, j, ch, LEN(ch)), 1);
            assert_int_equal(ch[0].rate_bps, 392 * GB);
        }
        assert_int_equal(__builtin_popcount(used), n - 1);
        assert_int_equal(sum, 392 * GB * (n - 1) / 7);
    }
    fabric_free(mesh);
    fabric_free(star);
}

/* F17 is about bandwidth: that from one half of a group to the other. */
static void a_group_in_a_star_has_the_whole_egress_of_its_members(void **state)
{
    static const uint16_t first[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct fabric *mesh = load_preset("npu-mesh-8"), *star = load_preset("npu-star-8");

    (void)state;
    for (unsigned n = 2; n <= 8; n *= 2) {
        assert_int_equal(fabric_bisection(star, first, n, false), n / 2 * 392 * GB);
        assert_int_equal(fabric_bisection(mesh, first, n, false), n / 2 * (n / 2) * 56 * GB);
    }
    fabric_free(mesh);
    fabric_free(star);
}

/* Two leaves of four hosts joined by one spine with a link each: the spine's links are the cut. */
static void a_narrow_spine_limits_bisection(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 4, 1, "");
    struct fab_level lv[FAB_MAX_LEVELS];

    (void)state;
    assert_int_equal(fabric_levels(f, lv, FAB_MAX_LEVELS), 2);
    assert_int_equal(lv[0].groups, 2);
    assert_int_equal(lv[0].bisection_bps, 4 * 50 * GB);
    assert_int_equal(lv[1].total_bps, 2 * 50 * GB);
    assert_int_equal(lv[1].bisection_bps, 2 * 50 * GB);
    fabric_free(f);
}

/* The first path found, a0 to b by s0, must be taken back: only s1 leads to b and not to c. */
static void bisection_is_the_best_that_the_cables_can_do(void **state)
{
    static const uint16_t hosts[] = {0, 1, 2, 3};
    struct fabric *f;

    (void)state;
    f = load_text(LINKS
                  "nodes = ( { name = (\"a0\", \"a1\", \"b\", \"c\"); kind = \"host\"; },\n"
                  "{ name = (\"l0\", \"l1\", \"l2\"); role = \"leaf\"; }, { name = (\"s0\", "
                  "\"s1\"); role = \"spine\"; } );\n"
                  "links = ( { a = (\"a0\", \"a1\"); b = \"l0\"; }, { a = \"b\"; b = \"l1\"; }, "
                  "{ a = \"c\"; b = \"l2\"; },\n"
                  "{ a = \"l0\"; b = (\"s0\", \"s1\"); }, { a = \"s0\"; b = (\"l1\", \"l2\"); }, "
                  "{ a = \"s1\"; b = \"l1\"; } );");
    assert_int_equal(fabric_bisection(f, hosts, 4, false), 2 * 50 * GB);
    assert_int_equal(fabric_bisection(f, hosts + 1, 2, false), 50 * GB);
    fabric_free(f);
}

static void scale_out_trees_join_every_gpu_by_its_nic(void **state)
{
    struct fabric *f = load_preset("rail-4x8");

    (void)state;
    assert_int_equal(f->n_trees, 4 + 16);
    for (unsigned t = 0; t < f->n_trees; t++) {
        unsigned hosts = 0;

        for (unsigned h = 0; h < f->n_hosts; h++) {
            uint16_t port = fabric_tree_port(f, &f->trees[t], h);

            hosts += port != FAB_NONE;
            if (t < 4) {
                assert_int_equal(port, 4);
                assert_int_equal(f->trees[t].parent[f->hosts[h]],
                                 f->nodes[f->hosts[h]].ports[4].peer_node);
            } else if (port != FAB_NONE) {
                assert_int_equal(port, (t - 4) % 4);
                assert_int_equal(f->trees[t].domain, h / 8);
            }
        }
        assert_int_equal(hosts, t < 4 ? 32 : 8);
    }
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_have_the_counts_and_bandwidths_of_what_they_model),
        cmocka_unit_test(planes_of_an_h100_node_are_split_as_its_links_are),
        cmocka_unit_test(rails_lead_to_the_leaf_of_their_number),
        cmocka_unit_test(scale_out_switches_have_64_ports),
        cmocka_unit_test(balanced_paths_of_a_shift_by_nodes_never_share_a_link),
        cmocka_unit_test(a_group_in_a_mesh_uses_the_cables_among_its_members),
        cmocka_unit_test(a_group_in_a_star_has_the_whole_egress_of_its_members),
        cmocka_unit_test(a_narrow_spine_limits_bisection),
        cmocka_unit_test(bisection_is_the_best_that_the_cables_can_do),
        cmocka_unit_test(scale_out_trees_join_every_gpu_by_its_nic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
