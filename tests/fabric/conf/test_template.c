/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates: every link of small ones by its name, rate and cables, in order; and what they refuse. */
#include "tests/fabric/load.h"

#define HOST_LINK  "host_link = { rate = \"1Gb/s\"; latency = \"1ns\"; }; "
#define SPINE_LINK "spine_link = { rate = \"2Gb/s\"; latency = \"2ns\"; }; "
#define CORE_LINK  "core_link = { rate = \"3Gb/s\"; latency = \"3ns\"; }; "
#define NVLINK     "nvlink = { rate = \"25GB/s\"; latency = \"4ns\"; }; "
#define NIC        "nic = { rate = \"5Gb/s\"; latency = \"5ns\"; }; "

/* "NAME RATE(Gb/s) LATENCY(ns)", and " LANES" of more than one. */
static const char *links_of(const struct fabric *f)
{
    static char text[8192];
    size_t at = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];

        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %llu %lld", l->name,
                               (unsigned long long)(l->rate_bps / 1000000000),
                               (long long)(l->latency_ps / 1000));
        if (l->lanes > 1)
            at += (size_t)snprintf(text + at, sizeof(text) - at, " %u", l->lanes);
        at += (size_t)snprintf(text + at, sizeof(text) - at, "\n");
    }
    return text;
}

static const char *nodes_of(const struct fabric *f)
{
    static char text[8192];
    size_t at = 0;

    for (unsigned i = 0; i < f->n_nodes; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s%s", f->nodes[i].name,
                               f->nodes[i].multimem ? "*" : "", f->nodes[i].reduce.on ? "+" : " ");
    return text;
}

static const struct {
    const char *conf, *nodes, *links;
} rows[] = {
    {"single_switch = { hosts = 3; " HOST_LINK "};", "h0 h1 h2 switch0 ",
     "h0:0-switch0:0 1 1\nh1:0-switch0:1 1 1\nh2:0-switch0:2 1 1\n"},
    {"full_mesh = { hosts = 2; " HOST_LINK "};", "h0 h1 ", "h0:0-h1:0 1 1\n"},
    {"full_mesh = { hosts = 4; " HOST_LINK "};", "h0 h1 h2 h3 ",
     "h0:0-h1:0 1 1\nh0:1-h2:0 1 1\nh0:2-h3:0 1 1\nh1:1-h2:1 1 1\nh1:2-h3:1 1 1\nh2:2-h3:2 1 1\n"},
    {"reduce = { };\nleaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 2; " HOST_LINK
     "spine_link = { rate = \"2Gb/s\"; latency = \"2ns\"; cables = 2; }; };",
     "h0 h1 h2 h3 leaf0+leaf1+spine0+",
     "h0:0-leaf0:0 1 1\nh1:0-leaf0:1 1 1\nh2:0-leaf1:0 1 1\nh3:0-leaf1:1 1 1\n"
     "leaf0:2-spine0:0 2 2\nleaf0:3-spine0:1 2 2\nleaf1:2-spine0:2 2 2\nleaf1:3-spine0:3 2 2\n"},
    {"leaf_spine = { leaves = 4; spines = 4; hosts_per_leaf = 1; pods = 2; cores = 4; "
     "core_groups = 2; " HOST_LINK SPINE_LINK CORE_LINK "};",
     "h0 h1 h2 h3 leaf0 leaf1 leaf2 leaf3 spine0 spine1 spine2 spine3 core0 core1 core2 core3 ",
     "h0:0-leaf0:0 1 1\nh1:0-leaf1:0 1 1\nh2:0-leaf2:0 1 1\nh3:0-leaf3:0 1 1\n"
     "leaf0:1-spine0:0 2 2\nleaf0:2-spine1:0 2 2\nleaf1:1-spine0:1 2 2\nleaf1:2-spine1:1 2 2\n"
     "leaf2:1-spine2:0 2 2\nleaf2:2-spine3:0 2 2\nleaf3:1-spine2:1 2 2\nleaf3:2-spine3:1 2 2\n"
     "spine0:2-core0:0 3 3\nspine0:3-core1:0 3 3\nspine1:2-core2:0 3 3\nspine1:3-core3:0 3 3\n"
     "spine2:2-core0:1 3 3\nspine2:3-core1:1 3 3\nspine3:2-core2:1 3 3\nspine3:3-core3:1 3 3\n"},
    {"gpu_nodes = { gpus = 2; planes = ( 3, 1 ); " NVLINK "};", "n0g0 n0g1 n0s0* n0s1* ",
     "n0g0:0-n0s0:0 600 4 3\nn0g1:0-n0s0:1 600 4 3\nn0g0:1-n0s1:0 200 4\nn0g1:1-n0s1:1 200 4\n"},
    {"gpu_nodes = { gpus = 1; planes = ( 4 ); nvlink = { rate = \"25Tb/s\"; latency = \"1ns\"; }; "
     "};",
     "n0g0 n0s0* ", "n0g0:0-n0s0:0 100000 1 4\n"},
    {"reduce = { };\ngpu_nodes = { gpus = 1; planes = ( 1 ); multimem = false; reduce = false; "
     "nodes = 2; " NVLINK NIC "};\nrails = { leaves = 1; };",
     "n0g0 n1g0 leaf0+n0s0 n1s0 ",
     "n0g0:0-n0s0:0 200 4\nn1g0:0-n1s0:0 200 4\nn0g0:1-leaf0:0 5 5\nn1g0:1-leaf0:1 5 5\n"},
    {"gpu_nodes = { nodes = 2; gpus = 3; planes = ( 64 ); " NVLINK NIC "};\n"
     "rails = { unit = 1; leaves = 2; spines = 4; pods = 2; cores = 4; core_groups = 2; " SPINE_LINK
         CORE_LINK "};",
     "n0g0 n0g1 n0g2 n1g0 n1g1 n1g2 leaf0 leaf1 leaf2 leaf3 spine0 spine1 spine2 spine3 core0 "
     "core1 "
     "core2 core3 n0s0* n1s0* ",
     "n0g0:0-n0s0:0 12800 4 64\nn0g1:0-n0s0:1 12800 4 64\nn0g2:0-n0s0:2 12800 4 64\n"
     "n1g0:0-n1s0:0 12800 4 64\nn1g1:0-n1s0:1 12800 4 64\nn1g2:0-n1s0:2 12800 4 64\n"
     "n0g0:1-leaf0:0 5 5\nn0g1:1-leaf1:0 5 5\nn0g2:1-leaf0:1 5 5\n"
     "n1g0:1-leaf2:0 5 5\nn1g1:1-leaf3:0 5 5\nn1g2:1-leaf2:1 5 5\n"
     "leaf0:2-spine0:0 2 2\nleaf0:3-spine1:0 2 2\nleaf1:1-spine0:1 2 2\nleaf1:2-spine1:1 2 2\n"
     "leaf2:2-spine2:0 2 2\nleaf2:3-spine3:0 2 2\nleaf3:1-spine2:1 2 2\nleaf3:2-spine3:1 2 2\n"
     "spine0:2-core0:0 3 3\nspine0:3-core1:0 3 3\nspine1:2-core2:0 3 3\nspine1:3-core3:0 3 3\n"
     "spine2:2-core0:1 3 3\nspine2:3-core1:1 3 3\nspine3:2-core2:1 3 3\nspine3:3-core3:1 3 3\n"},
    {"gpu_nodes = { nodes = 2; gpus = 1; planes = ( 1 ); " NVLINK NIC "};\n"
     "rails = { leaves = 2; spines = 1; " SPINE_LINK "};",
     "n0g0 n1g0 leaf0 leaf1 spine0 n0s0* n1s0* ",
     "n0g0:0-n0s0:0 200 4\nn1g0:0-n1s0:0 200 4\nn0g0:1-leaf0:0 5 5\nn1g0:1-leaf0:1 5 5\n"
     "leaf0:2-spine0:0 2 2\nleaf1:0-spine0:1 2 2\n"},
};

static void every_link_is_where_it_belongs(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fabric *f = load_text(rows[i].conf);

        assert_string_equal(nodes_of(f), rows[i].nodes);
        assert_string_equal(links_of(f), rows[i].links);
        fabric_free(f);
    }
}

static const struct {
    const char *conf, *text;
} mistakes[] = {
    {"leaf_spine = { };",
     "found no leaves, expected leaves = a number of 1 or more|"
     "found no spines, expected spines = a number of 1 or more|"
     "found no hosts_per_leaf, expected hosts_per_leaf = a number of 1 or more|"},
    {"leaf_spine = { leaves = 0; };", "leaves: found 0, expected an integer from 1 to 8192|"},
    {"leaf_spine = { leaves = 8193; };", "leaves: found 8193, expected an integer from 1 to 8192|"},
    {"leaf_spine = { spines = 0; };", "spines: found 0, expected an integer from 1 to 8192|"},
    {"leaf_spine = { hosts_per_leaf = 0; };",
     "hosts_per_leaf: found 0, expected an integer from 1 to 4096|"},
    {"leaf_spine = { pods = 0; };", "pods: found 0, expected an integer from 1 to 8192|"},
    {"leaf_spine = { cores = 0; };", "cores: found 0, expected an integer from 1 to 8192|"},
    {"leaf_spine = { core_groups = 0; };",
     "core_groups: found 0, expected an integer from 1 to 8192|"},
    {"leaf_spine = 1;", "leaf_spine: found 1, expected a group { leaves; spines; hosts_per_leaf; "
                        "host_link; spine_link; }|"},
    {"leaf_spine = { leaves = 1; spines = 1; hosts_per_leaf = 1; core_link = { }; };",
     "core_link: found it without cores, expected cores = a number|"},
    {"leaf_spine = { leaves = 3; spines = 2; hosts_per_leaf = 1; pods = 2; cores = 3; core_groups "
     "= "
     "2; };",
     "pods: found 2, expected one that divides the 3 leaves|"
     "core_groups: found 2, expected one that divides the 3 cores|"
     "core_groups: found 2, expected one that divides the 1 spines of a pod|"},
    {"leaf_spine = { leaves = 2; spines = 3; hosts_per_leaf = 1; pods = 2; cores = 1; };",
     "pods: found 2, expected one that divides the 3 spines|"},
    {"leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 1; pods = 2; };",
     "pods: found 2 without cores, expected cores that join them|"},
    {"single_switch = { hosts = 0; };", "hosts: found 0, expected an integer from 1 to 4096|"},
    {"single_switch = { hosts = 4097; };",
     "hosts: found 4097, expected an integer from 1 to 4096|"},
    {"single_switch = { hosts = 1025; };",
     "found more links at \"switch0\" than its 1024 ports, expected at most as many|"},
    {"single_switch = 2;", "single_switch: found 2, expected a group { hosts; host_link; }|"},
    {"full_mesh = { hosts = 1; };", "hosts: found 1, expected an integer from 2 to 21|"},
    {"full_mesh = { hosts = 22; };", "hosts: found 22, expected an integer from 2 to 21|"},
    {"gpu_nodes = 8;",
     "gpu_nodes: found 8, expected a group { nodes; gpus; planes; nvlink; nic; }|"},
    {"gpu_nodes = { planes = ( 1 ); nodes = 0; };",
     "nodes: found 0, expected an integer from 1 to 4096|"},
    {"gpu_nodes = { planes = ( 1 ); gpus = 0; };",
     "gpus: found 0, expected an integer from 1 to 1024|"},
    {"gpu_nodes = { planes = ( 1 ); gpus = 1025; };",
     "gpus: found 1025, expected an integer from 1 to 1024|"},
    {"gpu_nodes = { gpus = 1; planes = ( 1 ); multimem = 1; };",
     "multimem: found 1, expected true or false|"},
    {"gpu_nodes = { gpus = 1; };",
     "found no planes, expected planes = ( 5, 4, 4, 5 ) or the like|"},
    {"gpu_nodes = { gpus = 1; planes = ( 65 ); };",
     "planes: found a list ( ), expected a list ( 5, 4, 4, 5 ): the links of a GPU to each of up "
     "to "
     "19 planes|"},
    {"gpu_nodes = { gpus = 1; planes = ( ); };", "planes: found a list ( ), expected a list ( 5, "
                                                 "4, 4, 5 ): the links of a GPU to each of up to "
                                                 "19 planes|"},
    {"gpu_nodes = { gpus = 1; planes = ( 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1 "
     "); };",
     "planes: found a list ( ), expected a list ( 5, 4, 4, 5 ): the links of a GPU to each of up "
     "to "
     "19 planes|"},
    {"gpu_nodes = { gpus = 1; planes = ( 3 ); nvlink = { rate = \"34Tb/s\"; }; };",
     "planes: found a list ( ), expected planes of up to 100 Tb/s|"},
    {"gpu_nodes = { gpus = 1; planes = ( 1 ); nic = { }; };",
     "nic: found it without rails, expected the network that it is on|"},
    {"gpu_nodes = { gpus = 1; planes = ( 1 ); };\nrails = 1;",
     "rails: found 1, expected a group { unit; leaves; spines; spine_link; }|"},
    {"gpu_nodes = { gpus = 1; planes = ( 1 ); };\nrails = { };",
     "found no leaves, expected leaves = a number of 1 or more|"},
    {"gpu_nodes = { gpus = 1; planes = ( 1 ); };\nrails = { leaves = 0; unit = 0; spines = 0; pods "
     "= "
     "0; cores = 0; core_groups = 0; };",
     "leaves: found 0, expected an integer from 1 to 8192|"
     "unit: found 0, expected an integer from 1 to 4096|"
     "spines: found 0, expected an integer from 1 to 8192|"
     "pods: found 0, expected an integer from 1 to 8192|"
     "cores: found 0, expected an integer from 1 to 8192|"
     "core_groups: found 0, expected an integer from 1 to 8192|"},
    {"gpu_nodes = { gpus = 1; planes = ( 1 ); nodes = 6; };\n"
     "rails = { unit = 2; leaves = 1; spines = 3; pods = 2; cores = 3; core_groups = 2; };",
     "pods: found 2, expected one that divides the 3 units|"
     "pods: found 2, expected one that divides the 3 spines|"
     "core_groups: found 2, expected one that divides the 3 cores|"
     "core_groups: found 2, expected one that divides the 1 spines of a pod|"},
    {"gpu_nodes = { gpus = 1; planes = ( 1 ); nodes = 2; };\nrails = { unit = 1; leaves = 1; pods "
     "= "
     "2; };",
     "pods: found 2 without cores, expected cores that join them|"},
    {"gpu_nodes = { gpus = 1; planes = ( 1 ); };\nrails = { leaves = 1; cores = 1; };",
     "cores: found it without spines, expected those that it joins|"},
    {"gpu_nodes = { gpus = 1024; planes = ( 1 ); nodes = 5; };",
     "found 5120 hosts, expected at most 4096 in a fabric that runs; trib plan and trib model take "
     "up to 131072|"},
};

static void what_makes_no_sense_is_refused_by_name(void **state)
{
    static struct fab_errors errs;

    (void)state;
    for (unsigned i = 0; i < LEN(mistakes); i++) {
        char conf[512], got[1024] = "";

        snprintf(conf, sizeof(conf), LINKS "%s", mistakes[i].conf);
        assert_null(fabric_load_string(conf, "template.conf", &errs));
        for (unsigned e = 0; e < errs.n; e++) {
            strcat(got, errs.e[e].text);
            strcat(got, "|");
        }
        assert_string_equal(got, mistakes[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_link_is_where_it_belongs),
        cmocka_unit_test(what_makes_no_sense_is_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
