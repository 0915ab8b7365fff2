/* SPDX-License-Identifier: BSD-3-Clause */
/* The HCAs as PCI devices below /sys/devices: every name and text, by rates, CPUs and memory nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/world.h"

#define DOMAIN_AT "/sys/devices/pci7472:00"

/* The machine's CPUs are the test's. */
static long cpus = 40;
long __sysconf(int name);
long sysconf(int name);
long sysconf(int name)
{
    return name == _SC_NPROCESSORS_CONF ? cpus : __sysconf(name);
}

static void begin(void)
{
    world_tmpfs("/sys/devices");
    world_dir("/sys/devices/system");
    world_dir("/sys/devices/system/node");
    world_dir("/sys/devices/system/node/node0");
    world_dir(DOMAIN_AT);
}

/* ---- all of it ---- */

static void show_three(struct world *w)
{
    fprintf(w->out, "%d\n", tree_pci(&w->host));
    listed_dir(w->out, DOMAIN_AT, "", NULL);
}

static void make_three(struct world *w)
{
    begin();
    show_three(w);
}

static void function(FILE *out, const char *at, const char *class, unsigned id, const char *speed,
                     unsigned width, const char *middle)
{
    fprintf(out, "%sclass 444: %s\n", at, class);
    fprintf(out, "%scurrent_link_speed 444: %s GT/s PCIe\n", at, speed);
    fprintf(out, "%scurrent_link_width 444: %u\n", at, width);
    fprintf(out, "%sdevice 444: 0x000%u\n", at, id);
    fprintf(out, "%slocal_cpulist 444: 0-39\n", at);
    fprintf(out, "%slocal_cpus 444: 000000ff,ffffffff\n", at);
    fprintf(out, "%smax_link_speed 444: %s GT/s PCIe\n", at, speed);
    fprintf(out, "%smax_link_width 444: %u\n", at, width);
    fprintf(out, "%snuma_node 444: 0\n", at);
    fputs(middle, out);
    fprintf(out, "%ssubsystem_device 444: 0x000%u\n", at, id);
    fprintf(out, "%ssubsystem_vendor 444: 0x0000\n", at);
    fprintf(out, "%svendor 444: 0x0000\n", at);
}

static void each_hca_is_behind_a_bridge(void **state)
{
    static const char *const speed[] = {"32.0", "64.0", "64.0"};
    static const unsigned width[] = {16, 16, 32};
    FILE *out = captured_file();
    char at[64], more[256], expected[65536];

    (void)state;
    fprintf(out, "0\n");
    for (unsigned p = 0; p < 3; p++) {
        snprintf(at, sizeof(at), "7472:00:%02x.0/7472:%02x:00.0/", p, p + 1);
        fprintf(out, "7472:00:%02x.0/ 755\n%.*s/ 755\n", p, (int)strlen(at) - 1, at);
        snprintf(more, sizeof(more), "%ssubsystem -> /sys/bus/pci\n", at);
        function(out, at, "0x020000", 1, speed[p], width[p], more);
        snprintf(at, sizeof(at), "7472:00:%02x.0/", p);
        snprintf(more, sizeof(more),
                 "%spci_bus/ 755\n%spci_bus/7472:%02x/ 755\n%spci_bus/7472:%02x/uevent 444: \n", at,
                 at, p + 1, at, p + 1);
        function(out, at, "0x060400", 2, speed[p], width[p], more);
    }
    snprintf(expected, sizeof(expected), "%s", captured_text(out));
    ASSERT_WORLD(make_three, 3, expected);
}

/* ---- links by rate ---- */

static void say_one(struct world *w, const char *name)
{
    char path[256], text[600] = "";
    FILE *f;

    snprintf(path, sizeof(path), DOMAIN_AT "/7472:00:00.0/%s", name);
    f = fopen(path, "r");
    if (!f || !fgets(text, sizeof(text), f))
        snprintf(text, sizeof(text), "none\n");
    if (f)
        fclose(f);
    fputs(text, w->out);
}

static void make_rates(struct world *w)
{
    static const uint64_t rates[] = {100000000000, 500000000000, 500000000001, 1000000000000,
                                     1000000000001};
    for (unsigned i = 0; i < 5; i++) {
        begin();
        listed_ports[0].rate_bps = rates[i];
        fprintf(w->out, "%d ", tree_pci(&w->host));
        say_one(w, "max_link_width");
        say_one(w, "max_link_speed");
    }
}

static void a_link_carries_the_ports_rate(void **state)
{
    (void)state;
    ASSERT_WORLD(make_rates, 1,
                 "0 16\n32.0 GT/s PCIe\n"
                 "0 16\n32.0 GT/s PCIe\n"
                 "0 16\n64.0 GT/s PCIe\n"
                 "0 16\n64.0 GT/s PCIe\n"
                 "0 32\n64.0 GT/s PCIe\n");
}

/* ---- CPUs and memory ---- */

static void make_cpus(struct world *w)
{
    static const long n[] = {-1, 0, 1, 2, 31, 32, 33, 64, 65};

    for (unsigned i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
        begin();
        cpus = n[i];
        fprintf(w->out, "%d ", tree_pci(&w->host));
        say_one(w, "local_cpulist");
        say_one(w, "local_cpus");
    }
}

static void a_device_is_local_to_all_cpus(void **state)
{
    (void)state;
    ASSERT_WORLD(make_cpus, 1,
                 "0 0-0\n00000001\n"
                 "0 0-0\n00000001\n"
                 "0 0-0\n00000001\n"
                 "0 0-1\n00000003\n"
                 "0 0-30\n7fffffff\n"
                 "0 0-31\nffffffff\n"
                 "0 0-32\n00000001,ffffffff\n"
                 "0 0-63\nffffffff,ffffffff\n"
                 "0 0-64\n00000001,ffffffff,ffffffff\n");
}

static void make_many_cpus(struct world *w)
{
    static const long n[] = {1023, 1024, 1025, 5000};

    for (unsigned i = 0; i < 4; i++) {
        begin();
        cpus = n[i];
        fprintf(w->out, "%d ", tree_pci(&w->host));
        say_one(w, "local_cpulist");
        say_one(w, "local_cpus");
    }
}

static void cpus_are_counted_up_to_1024(void **state)
{
    char all[32 * 9 + 1] = "", expected[2048];

    (void)state;
    for (int i = 0; i < 31; i++)
        strcat(all, ",ffffffff");
    snprintf(expected, sizeof(expected),
             "0 0-1022\n7fffffff%s\n0 0-1023\nffffffff%s\n0 0-1023\nffffffff%s\n"
             "0 0-1023\nffffffff%s\n",
             all, all, all, all);
    ASSERT_WORLD(make_many_cpus, 1, expected);
}

static void make_nodes(struct world *w)
{
    begin();
    world_dir("/sys/devices/system/node/node1");
    fprintf(w->out, "%d ", tree_pci(&w->host));
    say_one(w, "numa_node");
    begin();
    world_need(rmdir("/sys/devices/system/node/node0"), "rmdir");
    fprintf(w->out, "%d ", tree_pci(&w->host));
    say_one(w, "numa_node");
    world_dir("/sys/devices/system/node/node1");
    listed_remove(DOMAIN_AT);
    world_dir(DOMAIN_AT);
    fprintf(w->out, "%d ", tree_pci(&w->host));
    say_one(w, "numa_node");
}

static void a_device_has_a_node_where_there_is_one(void **state)
{
    (void)state;
    ASSERT_WORLD(make_nodes, 1, "0 -1\n0 -1\n0 -1\n");
}

/* ---- mistakes ---- */

static void make_twice(struct world *w)
{
    begin();
    fprintf(w->out, "%d\n", tree_pci(&w->host));
    fprintf(w->out, "%d\n", tree_pci(&w->host));
    listed_remove(DOMAIN_AT);
    fprintf(w->out, "%d\n", tree_pci(&w->host));
    w->host.n_ports = 0;
    fprintf(w->out, "%d\n", tree_pci(&w->host));
}

static void what_is_there_is_refused(void **state)
{
    (void)state;
    ASSERT_WORLD(make_twice, 2, "0\n-17\n-2\n0\n");
}

static int of_pci(struct world *w)
{
    return tree_pci(&w->host);
}

static int of_buses(struct world *w)
{
    return tree_pci_buses(&w->host, DOMAIN_AT);
}

static int of_hcas(struct world *w)
{
    return tree_infiniband(&w->rd, &w->host, DOMAIN_AT);
}

static int of_verbs(struct world *w)
{
    return tree_infiniband_verbs(&w->host, DOMAIN_AT);
}

static int of_net(struct world *w)
{
    return tree_net(&w->rd, &w->host, DOMAIN_AT);
}

/* A disk with room for ever more files, until all of them fit. */
static void make_on_full_disks(struct world *w)
{
    static int (*const make[])(struct world *) = {of_pci, of_buses, of_hcas, of_verbs, of_net};

    for (unsigned i = 0; i < 5; i++) {
        unsigned inodes;
        int rc = -ENOSPC;

        for (inodes = 3; rc == -ENOSPC && inodes < 100; inodes++) {
            char options[64];

            snprintf(options, sizeof(options), "mode=755,nr_inodes=%u", inodes);
            world_need(mount("world", "/sys/devices", "tmpfs", 0, options), "tmpfs");
            world_dir(DOMAIN_AT);
            rc = make[i](w);
        }
        fprintf(w->out, "%d with %u files\n", rc, inodes - 1 - 2);
    }
}

static void each_file_must_fit(void **state)
{
    (void)state;
    ASSERT_WORLD(make_on_full_disks, 1,
                 "0 with 30 files\n" /* 2 folders, 15 of the bridge, 13 of the device */
                 "0 with 1 files\n"
                 "0 with 35 files\n"
                 "0 with 5 files\n"
                 "0 with 12 files\n");
}

#define TEST(t) cmocka_unit_test(t)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_hca_is_behind_a_bridge),
        TEST(a_link_carries_the_ports_rate),
        TEST(a_device_is_local_to_all_cpus),
        TEST(cpus_are_counted_up_to_1024),
        TEST(a_device_has_a_node_where_there_is_one),
        TEST(what_is_there_is_refused),
        TEST(each_file_must_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
