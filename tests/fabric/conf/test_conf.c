/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading conf files: missing settings have documented defaults, and every mistake is named with
 * its line, once. */
#include "tests/fabric/load.h"

#include <errno.h>
#include <stdlib.h>

struct mistake {
    int line;
    const char *text; /* part of the error */
};

static const struct mistake mistakes[] = {
    {2, "name: found \"a bad/name\", expected a name of 1 to 31 letters"},
    {3, "dilation: found 0, expected \"auto\" or an integer"},
    {4, "mtu: found 1500, expected 256, 512, 1024, 2048 or 4096"},
    {5, "ecmp: found \"balance\", expected \"hash\" or \"balanced\""},
    {6, "slots_per_host: found 251, expected an integer from 1 to 250"},
    {7, "found unknown key \"dilaton\", expected \"dilation\"?"},
    {8, "groups: found \"many\", expected an integer"},
    {8, "found window 256 above slots 100"},
    {11, "latency: found 300, expected a time up to 1s, with its unit"},
    {12, "found unknown key \"los\", expected \"loss\"?"},
    {13, "dup: found 1.5, expected a probability from 0.0 to 1.0, or as \"0.1%\""},
    {14, "buffer: found \"1KiB\", expected a size from 9216B"},
    {15, "pfc: found \"yes\", expected true or false"},
    {19, "name: found \"h1\", expected a name that no other node has (line 18)"},
    {20, "role: found \"leef\", expected \"host\", \"leaf\""},
    {21, "reduce: found true, expected false, or a group"},
    {22, "role: found \"spine\", expected role \"host\""},
    {23, "reduce: found it at a host"},
    {26, "rate: found \"400\", expected a rate from 1Mb/s to 100Tb/s, with its unit"},
    {27, "found a second link on port 0 of \"leaf1\", expected one (line 26)"},
    {28, "b: found \"leaf9\", expected the name of a node"},
    {29, "found a link from \"leaf0\" to itself"},
    {30, "found port 4 of \"leaf1\", expected 0 to 3"},
    {31, "found a link without b, expected b"},
    {32, "rate: found \"1b/s\", expected a rate from 1Mb/s"},
    {32, "corrupt: found -1, expected a probability"},
    {33, "cables: found 2 at a link that names its ports or leads to the outside"},
    {35, "nodes: found \"leafo\", expected the name of a node, as \"leaf0\""},
    {35, "name: found \"p\", expected a name that no other process has"},
    {35, "nodes: found \"leaf0\" in process \"p\" already"},
    {35, "found a process without name"},
};

static void every_mistake_of_a_file_is_named_once_with_its_line(void **state)
{
    static struct fab_errors errs;

    (void)state;
    assert_null(fabric_load("tests/fabric/conf/mistakes.conf", &errs));
    for (unsigned i = 0; i < LEN(mistakes) && i < errs.n; i++) {
        if (errs.e[i].line != mistakes[i].line || !strstr(errs.e[i].text, mistakes[i].text))
            fail_msg("error %u is %d: %s", i, errs.e[i].line, errs.e[i].text);
        assert_string_equal(errs.e[i].file, "tests/fabric/conf/mistakes.conf");
    }
    assert_int_equal(errs.n, LEN(mistakes));
    assert_int_equal(errs.total, errs.n);
}

/* Files with one mistake each: exactly that one is reported. */
static const struct {
    const char *conf;
    int line;
    const char *text;
} singles[] = {
    {"name = \"a\"\nmtu = = 4;", 2, "syntax error"},
    {"mtu = 256;\nmtu = 512;", 2, "duplicate setting name"},
    {"\xef\xbb\xbfmtu = = 4;", 1, "syntax error: found \"mtu"},
    {LINKS "reduce = {\n  groups = 4;\n", 4, "found the end of the file, expected a ; or }"},
    {LINKS "leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 4; };\nspeed = 4096;", 3,
     "nodes, links, machines, trunk_key, processes, access"},
    {"faults = ({ host = \"h6\"; die = true; });", 1, "found a fault plan, expected a fabric"},
    {"name = \"w\";\ntraining = { type = \"bf16\"; };", 2, "found a workload, expected a fabric"},
    {"a = \"never closed", 1, "expected libconfig's name = value;"},
    {"mtu = 4096;\n  @include \"/etc/passwd\"\n", 2, "found @include"},
    {"", 0, "found no hosts"},
    {LINKS "leaf_spin = { leaves = 2; };", 2,
     "unknown key \"leaf_spin\", expected \"leaf_spine\"?"},
    {LINKS "leaf_spine = { leafs = 2; spines = 2; hosts_per_leaf = 4; };", 2,
     "\"leafs\", expected \"leaves\"?"},
    {LINKS "leaf_spine = { leaves = 2; spines = 2; };", 2, "found no hosts_per_leaf"},
    {LINKS "single_switch = { hosts = 2; };\ntransport = 5;", 3,
     "transport: found 5, expected a group"},
    {LINKS "single_switch = { hosts = 2; };\ntransport = { windows = 5; };", 3,
     "found unknown key \"windows\", expected \"window\"?"},
    {LINKS "single_switch = { hosts = 2; };\ntransport = { window = 0; };", 3,
     "window: found 0, expected "},
    {LINKS "single_switch = { hosts = 2; };\ntransport = { ack_timeout = \"8us\"; };", 3,
     "ack_timeout: found \"8us\", expected "},
    {LINKS "single_switch = { hosts = 2; };\ntransport = { retry_count = 8; };", 3,
     "retry_count: found 8, expected "},
    {LINKS "single_switch = { hosts = 2; };\nforwarding = \"cut\";", 3,
     "forwarding: found \"cut\", expected \"store-and-forward\" or \"cut-through\""},
    {LINKS "single_switch = { hosts = 2; };\nforwarding = true;", 3, "forwarding: found true"},
    {LINKS "single_switch = { hosts = 2; };\nforwardin = \"cut-through\";", 3,
     "found unknown key \"forwardin\", expected \"forwarding\"?"},
    {LINKS "single_switch = { hosts = 2; };\n"
           "nodes = ( { name = \"h\"; kind = \"host\"; forwarding = \"cut-through\"; } );\n"
           "links = ( { a = \"h\"; b = \"switch0\"; } );",
     3, "forwarding: found it at a host, expected it at switches only"},
    {LINKS "single_switch = { hosts = 2; };\n"
           "nodes = ( { name = \"s\"; role = \"leaf\"; forwarding = 5; },\n"
           " { name = \"h\"; kind = \"host\"; } );\n"
           "links = ( { a = \"s\"; b = ( \"h\", \"switch0\" ); } );",
     3, "forwarding: found 5, expected \"store-and-forward\" or"},
    {LINKS "single_switch = { hosts = 2; };\ncosts = 5;", 3, "costs: found 5, expected a group"},
    {LINKS "single_switch = { hosts = 2; };\ncosts = { cpu = \"1us\"; };", 3,
     "found unknown key \"cpu\", expected \"gpu\"?"},
    {LINKS "single_switch = { hosts = 2; };\ncosts = { gpu = 5; };", 3,
     "gpu: found 5, expected a time"},
    {"single_switch = { hosts = 2;\nhost_link = { rate = \"1Gb/s\"; latency = \"1us\"; efficiency "
     "= 0; }; };",
     2, "efficiency: found 0, expected a share"},
    {LINKS "leaf_spine = 4;", 2, "leaf_spine: found 4, expected a group"},
    {LINKS "leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 3000; };", 2,
     "found 6000 hosts, expected at most 4096 in a fabric that runs; trib plan and trib model take "
     "up "
     "to 131072"},
    {LINKS "leaf_spine = { leaves = 100; spines = 900; hosts_per_leaf = 1; };", 2,
     "found more links, expected at most 49152 in a fabric that runs; trib plan"},
    {LINKS "gpu_nodes = { nodes = 4000; gpus = 1; planes = ( 1, 1 ); };", 2,
     "found more nodes, expected at most 8192 in a fabric that runs; trib plan"},
    {LINKS "gpu_nodes = { gpus = 2; };", 2, "found no planes"},
    {LINKS "gpu_nodes = { gpus = 2; planes = ( 5, 0 ); };", 2, "planes: found"},
    {LINKS "gpu_nodes = { gpus = 2; planes = 4; };", 2, "planes: found 4, expected a list"},
    {LINKS "gpu_nodes = { planes = ( 5 ); };", 2, "found no gpus"},
    {LINKS "gpu_nodes = { gpus = 2; planes = ( 5 ); nic = { }; };", 2, "nic: found it without"},
    {LINKS "gpu_nodes = { gpus = 1; planes = ( 5 ); nodes = 2; };", 2,
     "no path between \"n0g0\" and \"n1g0\""},
    {LINKS "gpu_nodes = { gpus = 2; planes = ( 5 ); };\nrails = { };", 3, "found no leaves"},
    {LINKS "gpu_nodes = { gpus = 2; planes = ( 5 ); nodes = 6; };\n"
           "rails = { leaves = 2; unit = 4; };",
     3, "unit: found 4, expected one that divides the 6 nodes"},
    {LINKS "gpu_nodes = { gpus = 2; planes = ( 5 ); nodes = 2; };\n"
           "rails = { leaves = 1; pods = 2; unit = 1; };",
     3, "pods: found 2 without cores"},
    {LINKS "gpu_nodes = { gpus = 2; planes = ( 5 ); };\nrails = { leaves = 1; cores = 1; };", 3,
     "cores: found it without spines"},
    {LINKS "single_switch = { hosts = 2; };\nrails = { leaves = 1; };", 3,
     "rails: found it without gpu_nodes"},
    {LINKS "single_switch = { hosts = 2; };\nfull_mesh = { hosts = 3; };", 3,
     "full_mesh: found a second template, expected single_switch"},
    {LINKS "full_mesh = { hosts = 22; };", 2, "hosts: found 22, expected"},
    {LINKS "full_mesh = { };", 2, "found no hosts"},
    {LINKS "single_switch = { hosts = 2; };\nleaf_spine = { leaves = 2; spines = 1; hosts_per_leaf "
           "= 1; };",
     2, "found a second template"},
    {"link_defaults = { rate = \"1Gb/s\"; };\nsingle_switch = { hosts = 2; };", 2,
     "host_link without latency"},
    {"link_defaults = { latency = \"1ns\"; };\nsingle_switch = { hosts = 2; };", 2,
     "host_link without rate"},
    {LINKS "single_switch = { hosts = 2; host_link = { rate = 5; }; };", 2, "rate: found 5"},
    {LINKS "single_switch = { hosts = 2; host_link = { rate = \"200Tb/s\"; }; };", 2,
     "rate: found \"200Tb/s\""},
    {LINKS "single_switch = { hosts = 2; host_link = { latency = \"2s\"; }; };", 2,
     "latency: found \"2s\""},
    {LINKS "single_switch = { hosts = 2; host_link = { ecn = \"2MiB\"; buffer = \"1MiB\"; }; };", 2,
     "ecn: found a threshold"},
    {LINKS "single_switch = { hosts = 2; host_link = { ecn = \"2KiB\"; ecn_max = \"1KiB\"; }; };",
     2, "ecn_max: found a threshold below ecn"},
    {LINKS "single_switch = { hosts = 2; host_link = { ecn_prob = 0.1; }; };", 2,
     "ecn_prob: found it without ecn"},
    {LINKS "dcqcn = true;\nsingle_switch = { hosts = 2; };", 2, "dcqcn: found no link that marks"},
    {LINKS "dcqcn = 7;\nsingle_switch = { hosts = 2; };", 2, "dcqcn: found 7"},
    {LINKS "dcqcn = { rpg_gain = 7; };\nsingle_switch = { hosts = 2; };", 2,
     "found unknown key \"rpg_gain\""},
    {LINKS "pfc_watchdog = true;\nsingle_switch = { hosts = 2; };", 2, "pfc_watchdog: found true"},
    {LINKS "pfc_watchdog = \"1ns\";\nsingle_switch = { hosts = 2; };", 2,
     "pfc_watchdog: found \"1ns\""},
    {LINKS "single_switch = { hosts = 2; };\nprocesses = \"per-node\";", 3,
     "processes: found \"per-node\""},
    {LINKS "single_switch = { hosts = 2; };\nprocesses = ( { name = \"p\"; nodes = (\"h0\"); } );",
     3, "found switch \"switch0\" in none"},
    {LINKS "single_switch = { hosts = 2; };\nprocesses = ();", 3, "processes: found 0"},
    {LINKS
     "leaf_spine = { leaves = 100; spines = 40; hosts_per_leaf = 1; };\nprocesses = \"per_node\";",
     3, "more than 128"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { name = \"h1\"; kind = \"host\"; } );", 3,
     "name: found \"h1\""},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { name = \"h2\"; kind = \"host\"; } );", 3,
     "found no link at port 0"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { name = \"s\"; role = \"leaf\"; } );", 3,
     "without a path to any host"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { kind = \"switch\"; } );", 3,
     "found a node without name"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { name = \"s\"; } );", 3,
     "found a node without kind and role"},
    {LINKS "nodes = ( { name = \"s\"; kind = \"switch\"; }, { name = \"h\"; kind = \"host\"; } );\n"
           "links = ( { a = \"h\"; b = \"s\"; cables = 21; } );",
     3, "more links at \"h\" than its 20 ports"},
    {LINKS "single_switch = { hosts = 1; };\n"
           "nodes = ( { name = \"h\"; kind = \"host\"; ports = 21; } );\n"
           "links = ( { a = \"h\"; b = \"switch0\"; } );",
     3, "ports: found 21 at a host"},
    {LINKS "dilation = 2;\nsingle_switch = { hosts = 2; };\nlinks = ( { a = \"switch0\"; port = "
           "\"net_tap0\"; } );",
     4, "port: found dilation 2"},
    {LINKS "single_switch = { hosts = 2; };\nlinks = ( { a = \"h0\"; port = \"net_tap0\"; } );", 3,
     "port: found it at a host alone"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { name = \"g\"; kind = \"host\"; } );\n"
           "links = ( { a = \"g\"; b = \"switch0\"; port = \"vhost:\"; } );",
     4, "port: found \"vhost:\", expected \"vhost:PATH\""},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { name = \"l\"; role = \"leaf\"; } );\n"
           "links = ( { a = \"l\"; b = \"switch0\"; port = \"vhost:x\"; },\n"
           " { a = \"h0\"; b = \"l\"; } );",
     4, "port: found it at two nodes of one kind"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { name = \"g\"; kind = \"host\"; } );\n"
           "links = ( { a = ( \"g\" ); b = \"switch0\"; port = \"vhost:x\"; } );",
     4, "port: found a list of nodes"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { name = \"g\"; kind = \"host\"; } );\n"
           "links = ( { a = \"g\"; b = \"switch0\"; port = \"vhost:x\"; },\n"
           " { a = \"g\"; b = \"switch0\"; } );",
     3, "found links of host \"g\" with port and without"},
    {LINKS "single_switch = { hosts = 2; };\nlinks = ( { a = \"h0\"; b = \"switch0:zz\"; } );", 3,
     "b: found \"switch0:zz\""},
    {LINKS "leaf_spine = { leaves = 4; spines = 4; hosts_per_leaf = 2; pods = 2; };", 2,
     "pods: found 2 without cores"},
    {LINKS "leaf_spine = { leaves = 4; spines = 3; hosts_per_leaf = 2; pods = 3; cores = 4; };", 2,
     "pods: found 3, expected one that divides the 4 leaves"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { of = \"switch1\"; reduce = false; } );", 3,
     "of: found \"switch1\", expected the name of a node, as \"switch0\""},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { of = \"switch0\"; } );", 3,
     "of: found nothing with it"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { of = \"h0\"; reduce = false; } );", 3,
     "reduce: found it at a host"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { of = \"switch0\"; ports = 9; } );", 3,
     "ports: found it with of"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { of = \"switch0\"; reduce = false; },\n"
           " { of = ( \"switch0\" ); forwarding = \"cut-through\"; } );",
     4, "of: found \"switch0\" a second time, expected its keys at line 3"},
    {LINKS "single_switch = { hosts = 2; };\nnodes = ( { of = ( ); reduce = false; } );", 3,
     "of: found no name, expected the name of a node"},
    {LINKS "single_switch = { hosts = 2; };\n"
           "nodes = ( { of = ( \"switch0\", \"switch0\" ); reduce = false; } );",
     3, "of: found \"switch0\" twice, expected it once"},
    {LINKS "single_switch = { hosts = 2; };\nlinks = ( { of = \"h0\"; loss = 0.5; } );", 3,
     "of: found \"h0\", expected two nodes"},
    {LINKS "single_switch = { hosts = 2; };\nlinks = ( { of = \"h0-h1\"; loss = 0.5; } );", 3,
     "of: found \"h0-h1\", which no link joins"},
    {LINKS "single_switch = { hosts = 2; };\nlinks = ( { of = \"h0-switch0\"; } );", 3,
     "of: found nothing with it"},
    {LINKS "single_switch = { hosts = 2; };\nlinks = ( { of = 7; loss = 0.5; } );", 3,
     "of: found 7, expected the nodes of a link"},
    {LINKS "single_switch = { hosts = 2; };\nlinks = ( { of = \"h0-switch0\"; cables = 2; } );", 3,
     "cables: found it with of"},
    {LINKS "single_switch = { hosts = 2; };\nlinks = ( { of = \"h0-switch0\"; loss = 0.5; },\n"
           " { of = \"switch0-h0\"; dup = 0.5; } );",
     4, "of: found \"switch0-h0\" a second time, expected its keys at line 3"},
    {LINKS "single_switch = { hosts = 2; };\nlinks = ( { of = \"h0-switch0\"; los = 0.5; } );", 3,
     "found unknown key \"los\""},
    {LINKS "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },\n { name = (\"s0\", \"s1\"); "
           "role = \"leaf\"; } );\n"
           "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; } );",
     2, "found no path between \"h0\" and \"h1\""},
};

/* Two pods of four leaves and two spines; each spine is joined with the two cores of its group. */
static void leaves_and_spines_can_have_cores(void **state)
{
    static struct fab_errors errs;
    struct fabric *f = fabric_load_string(
        LINKS "leaf_spine = { leaves = 8; spines = 4; hosts_per_leaf = 4; pods = 2; cores = 4; "
              "core_groups = 2; core_link = { rate = \"800Gb/s\"; latency = \"1us\"; }; };",
        "three.conf", &errs);
    uint32_t path[8];

    (void)state;
    if (!f)
        fab_errors_print(&errs, stderr);
    assert_non_null(f);
    assert_int_equal(f->n_hosts, 32);
    assert_int_equal(f->n_switches, 8 + 4 + 4);
    assert_int_equal(f->n_links, 32 + 8 * 2 + 4 * 2);
    assert_true(fabric_link_by_name(f, "leaf3-spine1") >= 0);
    assert_int_equal(fabric_link_by_name(f, "leaf4-spine1"), -ENOENT); /* another pod */
    assert_true(fabric_link_by_name(f, "spine3-core2") >= 0);
    assert_int_equal(fabric_link_by_name(f, "spine2-core2"), -ENOENT); /* another group */
    assert_int_equal(fabric_path(f, fabric_node_index(f, fabric_node(f, "h0")),
                                 fabric_node_index(f, fabric_node(f, "h31")), path, LEN(path)),
                     6);
    fabric_free(f);
}

static void a_file_with_one_mistake_gives_one_error(void **state)
{
    static struct fab_errors errs;

    (void)state;
    for (unsigned i = 0; i < LEN(singles); i++) {
        struct fabric *f = fabric_load_string(singles[i].conf, "one.conf", &errs);

        if (f || errs.total != 1 || errs.e[0].line != singles[i].line ||
            !strstr(errs.e[0].text, singles[i].text)) {
            fab_errors_print(&errs, stderr);
            fail_msg("row %u (%s): %u errors", i, singles[i].text, errs.total);
        }
    }
}

static void more_mistakes_than_fit_are_counted(void **state)
{
    static struct fab_errors errs;
    char text[4096] = LINKS "single_switch = { hosts = 1; };", *out = NULL;
    size_t size;
    FILE *mem = open_memstream(&out, &size);

    (void)state;
    for (unsigned i = 0; i < FAB_MAX_ERRORS + 10; i++)
        sprintf(text + strlen(text), "unknown%u = 1;\n", i);
    assert_null(fabric_load_string(text, "many.conf", &errs));
    assert_int_equal(errs.n, FAB_MAX_ERRORS);
    assert_int_equal(errs.total, FAB_MAX_ERRORS + 10);
    fab_errors_print(&errs, mem);
    fclose(mem);
    assert_non_null(strstr(out, "many.conf:2: found unknown key"));
    assert_non_null(strstr(out, "and 10 more"));
    free(out);
}

static void files_that_cannot_be_read_are_named(void **state)
{
    static struct fab_errors errs;

    (void)state;
    assert_null(fabric_load("tests/fabric/conf/no-such.conf", &errs));
    assert_int_equal(errs.n, 1);
    assert_non_null(strstr(errs.e[0].text, "No such file"));
    assert_null(fabric_load("tests", &errs));
    assert_int_equal(errs.n, 1);
    assert_null(fabric_load("tests/fabric/conf/no-such.conf", NULL));
}

static void what_is_left_out_has_defaults(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(LINKS "single_switch = { hosts = 2; };");
    assert_string_equal(f->name, "test");
    assert_int_equal(f->mtu, 4096);
    assert_int_equal(f->dilation, 0);
    assert_int_equal(f->ecmp, FAB_ECMP_HASH);
    assert_int_equal(f->slots_per_host, 64);
    assert_false(f->nodes[2].cut_through);
    assert_int_equal(f->links[0].buffer_bytes, 1 << 20);
    assert_int_equal(f->links[0].buffer_pkts, 2048);
    assert_int_equal(f->links[0].ecn_bytes, 0);
    assert_true(f->links[0].pfc);
    assert_false(f->dcqcn.on);
    assert_int_equal(f->pfc_watchdog_ps, 0);
    assert_false(f->nodes[fabric_node_index(f, fabric_node(f, "switch0"))].reduce.on);
    assert_int_equal(f->n_trees, 0);
    assert_int_equal(f->n_procs, 1);
    assert_string_equal(f->procs[0].name, "fabric");
    assert_int_equal(f->procs[0].n_nodes, 3);
    fabric_free(f);
}

/* The file's for all switches, of a template too; a node's own before it; never at hosts. */
static void switches_forward_as_the_file_or_their_node_says(void **state)
{
    static const char *const of_file[] = {"", "forwarding = \"store-and-forward\";",
                                          "forwarding = \"cut-through\";"};

    (void)state;
    for (unsigned i = 0; i < LEN(of_file); i++) {
        char text[1024];
        struct fabric *f;

        snprintf(text, sizeof(text),
                 LINKS
                 "single_switch = { hosts = 2; };\n"
                 "nodes = ( { name = \"s\"; role = \"leaf\"; },\n"
                 " { name = \"cut\"; role = \"leaf\"; forwarding = \"cut-through\"; },\n"
                 " { name = \"store\"; role = \"leaf\"; forwarding = "
                 "\"store-and-forward\"; } );\n"
                 "links = ( { a = (\"s\", \"cut\", \"store\"); b = (\"h0\", \"h1\"); } );\n%s",
                 of_file[i]);
        f = load_text(text);
        assert_int_equal(fabric_node(f, "switch0")->cut_through, i == 2);
        assert_int_equal(fabric_node(f, "s")->cut_through, i == 2);
        assert_true(fabric_node(f, "cut")->cut_through);
        assert_false(fabric_node(f, "store")->cut_through);
        assert_false(fabric_node(f, "h0")->cut_through);
        fabric_free(f);
    }
}

static void a_host_behind_a_port_is_outside_and_has_its_place_all_the_same(void **state)
{
    const struct fab_node *sw, *g;
    struct fabric *f;

    (void)state;
    f = load_text(LINKS REDUCE
                  "single_switch = { hosts = 2; };\n"
                  "nodes = ( { name = \"g0\"; kind = \"host\"; } );\n"
                  "links = ( { a = \"g0\"; b = \"switch0:5\"; port = \"vhost:g0.sock\"; } );");
    sw = fabric_node(f, "switch0");
    g = fabric_node(f, "g0");
    assert_int_equal(f->dilation, 1);
    assert_true(g->outside);
    assert_false(fabric_node(f, "h0")->outside);
    assert_int_equal(g->ip, fabric_node(f, "h0")->ip + 2);
    assert_string_equal(sw->ports[5].external, "vhost:g0.sock");
    assert_string_equal(g->ports[0].external, "");
    assert_ptr_equal(&f->nodes[sw->ports[5].peer_node], g);
    assert_int_equal(f->trees[0].parent[fabric_node_index(f, g)], fabric_node_index(f, sw));
    for (unsigned i = 0; i < f->procs[0].n_nodes; i++)
        assert_int_not_equal(f->procs[0].nodes[i], fabric_node_index(f, g));
    assert_int_equal(f->procs[0].n_nodes, 3);
    fabric_free(f);
}

static void a_port_to_the_outside_runs_in_real_time(void **state)
{
    const struct fab_node *sw;
    struct fabric *f;

    (void)state;
    f = load_text(
        LINKS
        "single_switch = { hosts = 1; };\n"
        "links = ( { a = \"switch0:3\"; port = \"net_tap0,iface=x\"; rate = \"10Gb/s\"; } );");
    sw = fabric_node(f, "switch0");
    assert_int_equal(f->dilation, 1);
    assert_int_equal(f->n_links, 1);
    assert_int_equal(sw->n_ports, 4);
    assert_string_equal(sw->ports[3].external, "net_tap0,iface=x");
    assert_int_equal(sw->ports[3].rate_bps, 10000000000);
    assert_int_equal(sw->ports[3].link, FAB_NONE);
    assert_true(sw->ports[3].flood);
    assert_int_equal(sw->ports[1].link, FAB_NONE);
    assert_false(sw->ports[1].flood);
    fabric_free(f);
}

static void the_shipped_files_load(void **state)
{
    static const char *const files[] = {"conf/leaf-spine-8.conf", "conf/leaf-spine-8-procs.conf",
                                        "conf/single-switch-4.conf", "conf/two-hosts.conf"};
    static const uint16_t hosts[] = {8, 8, 4, 2}, trees[] = {2, 2, 1, 1}, procs[] = {1, 4, 1, 1};

    (void)state;
    for (unsigned i = 0; i < LEN(files); i++) {
        struct fabric *f = load_file(files[i]);

        assert_non_null(strstr(files[i], f->name));
        assert_int_equal(f->n_hosts, hosts[i]);
        assert_int_equal(f->n_trees, trees[i]);
        assert_int_equal(f->n_procs, procs[i]);
        assert_int_equal(f->dilation, 0);
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_of_a_file_is_named_once_with_its_line),
        cmocka_unit_test(leaves_and_spines_can_have_cores),
        cmocka_unit_test(a_file_with_one_mistake_gives_one_error),
        cmocka_unit_test(more_mistakes_than_fit_are_counted),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
        cmocka_unit_test(what_is_left_out_has_defaults),
        cmocka_unit_test(switches_forward_as_the_file_or_their_node_says),
        cmocka_unit_test(a_host_behind_a_port_is_outside_and_has_its_place_all_the_same),
        cmocka_unit_test(a_port_to_the_outside_runs_in_real_time),
        cmocka_unit_test(the_shipped_files_load),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
