/* SPDX-License-Identifier: BSD-3-Clause */
/* The sysfs files of a host's HCAs: every name, mode, text and link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/sandbox/tree_put.h"
#include "tests/host/sandbox/listing.h"
#include "tests/support/captured.h"

struct made {
    struct rundir rd;
    char dir[64];
};

static int make(void **state)
{
    static struct made m;

    listed_run(&m.rd);
    snprintf(m.dir, sizeof(m.dir), "/tmp/tribtree.XXXXXX");
    *state = &m;
    return mkdtemp(m.dir) ? 0 : -1;
}

static int drop(void **state)
{
    struct made *m = *state;

    listed_remove(m->rd.path);
    listed_remove(m->dir);
    return 0;
}

static const char *listed(const struct made *m)
{
    FILE *out = captured_file();

    listed_dir(out, m->dir, "", m->rd.path);
    return captured_text(out);
}

/* ---- put ---- */

static void a_file_is_written_once_with_its_directories(void **state)
{
    struct made *m = *state;

    assert_int_equal(put(m->dir, "a/b/c", "%s %d", "text", 7), 0);
    assert_int_equal(put(m->dir, "a/b/d", "%s", ""), 0);
    assert_int_equal(put(m->dir, "e", "x"), 0);
    assert_int_equal(put(m->dir, "e", "y"), -EEXIST);
    assert_int_equal(put(m->dir, "e/f", "y"), -ENOTDIR);
    assert_string_equal(listed(m), "a/ 755\n"
                                   "a/b/ 755\n"
                                   "a/b/c 444: text 7\n"
                                   "a/b/d 444: \n"
                                   "e 444: x\n");
    assert_int_equal(put("/proc/nowhere", "a/b", "y"), -ENOENT);
}

/* 512 bytes with the end of the text. */
static void a_path_that_does_not_fit_is_refused(void **state)
{
    struct made *m = *state;
    char name[513];
    size_t left = 511 - strlen(m->dir) - 1;

    memset(name, 'a', sizeof(name));
    for (size_t i = 200; i < left - 1; i += 200)
        name[i] = '/';
    name[left] = 0;
    assert_int_equal(put(m->dir, name, "x"), 0);
    name[left] = 'a', name[left + 1] = 0;
    assert_int_equal(put(m->dir, name, "x"), -ENAMETOOLONG);
}

/* ---- trees ---- */

#define DEVICE(n, pci, ip, guid, gids, rate)                                                       \
    "trib" n "/ 755\n"                                                                             \
    "trib" n "/board_id 444: tributary\n"                                                          \
    "trib" n "/device -> /sys/devices/pci7472:00/7472:00:" pci "\n"                                \
    "trib" n "/fw_ver 444: tributary\n"                                                            \
    "trib" n "/hca_type 444: tributary\n"                                                          \
    "trib" n "/hw_rev 444: 0x0\n"                                                                  \
    "trib" n "/node_desc 444: h7\n"                                                                \
    "trib" n "/node_guid 444: " guid "\n"                                                          \
    "trib" n "/node_type 444: 1: CA\n"                                                             \
    "trib" n "/ports/ 755\n"                                                                       \
    "trib" n "/ports/1/ 755\n"                                                                     \
    "trib" n "/ports/1/cap_mask 444: 0x04010000\n"                                                 \
    "trib" n "/ports/1/counters -> RUN/port/h7/" n ".counters/counters\n"                          \
    "trib" n "/ports/1/gid_attrs/ 755\n"                                                           \
    "trib" n "/ports/1/gid_attrs/ndevs/ 755\n"                                                     \
    "trib" n "/ports/1/gid_attrs/ndevs/0 444: trib" n "\n"                                         \
    "trib" n "/ports/1/gid_attrs/ndevs/1 444: trib" n "\n"                                         \
    "trib" n "/ports/1/gid_attrs/types/ 755\n"                                                     \
    "trib" n "/ports/1/gid_attrs/types/0 444: RoCE v2\n"                                           \
    "trib" n "/ports/1/gid_attrs/types/1 444: RoCE v2\n"                                           \
    "trib" n "/ports/1/gids/ 755\n"                                                                \
    "trib" n "/ports/1/gids/0 444: 0000:0000:0000:0000:0000:ffff:" ip "\n"                         \
    "trib" n "/ports/1/gids/1 444: fe80:0000:0000:0000:" gids "\n"                                 \
    "trib" n "/ports/1/hw_counters -> RUN/port/h7/" n ".counters/hw_counters\n"                    \
    "trib" n "/ports/1/lid 444: 0x0\n"                                                             \
    "trib" n "/ports/1/lid_mask_count 444: 0\n"                                                    \
    "trib" n "/ports/1/link_layer 444: Ethernet\n"                                                 \
    "trib" n "/ports/1/phys_state -> RUN/port/h7/" n ".state/phys_state\n"                         \
    "trib" n "/ports/1/pkeys/ 755\n"                                                               \
    "trib" n "/ports/1/pkeys/0 444: 0xffff\n"                                                      \
    "trib" n "/ports/1/rate 444: " rate " Gb/sec\n"                                                \
    "trib" n "/ports/1/sm_lid 444: 0x0\n"                                                          \
    "trib" n "/ports/1/sm_sl 444: 0\n"                                                             \
    "trib" n "/ports/1/state -> RUN/port/h7/" n ".state/state\n"                                   \
    "trib" n "/sys_image_guid 444: " guid "\n"

static void hcas_are_as_the_kernel_shows_them(void **state)
{
    struct made *m = *state;
    struct fab_node h = listed_host(2);
    char path[RUN_PATH + 64];

    assert_int_equal(tree_infiniband(&m->rd, &h, m->dir), 0);
    assert_string_equal(listed(m), DEVICE("0", "00.0/7472:01:00.0", "0a0b:0c0d",
                                          "0054:0aff:fe0b:0c0d", "0054:0aff:fe0b:0c0d", "400")
                                       DEVICE("1", "01.0/7472:02:00.0", "c1d2:e3f4",
                                              "0054:c1ff:fed2:e3f4", "0054:c1ff:fed2:e3f4", "800"));
    /* What they lead to is there. */
    for (unsigned p = 0; p < 2; p++) {
        snprintf(path, sizeof(path), "%s/trib%u/ports/1/state", m->dir, p);
        assert_int_equal(access(path, R_OK), 0);
        snprintf(path, sizeof(path), "%s/trib%u/ports/1/hw_counters/lifespan", m->dir, p);
        assert_int_equal(access(path, R_OK), 0);
    }
    assert_int_equal(tree_infiniband(&m->rd, &h, m->dir), -EEXIST);
}

static void hcas_have_character_devices(void **state)
{
    struct made *m = *state;
    struct fab_node h = listed_host(2);

    assert_int_equal(tree_infiniband_verbs(&h, m->dir), 0);
    assert_string_equal(listed(m), "abi_version 444: 6\n"
                                   "trib0/ 755\n"
                                   "trib0/abi_version 444: 1\n"
                                   "trib0/dev 444: 1:3\n"
                                   "trib0/ibdev 444: trib0\n"
                                   "trib1/ 755\n"
                                   "trib1/abi_version 444: 1\n"
                                   "trib1/dev 444: 1:3\n"
                                   "trib1/ibdev 444: trib1\n");
    assert_int_equal(tree_infiniband_verbs(&h, m->dir), -EEXIST);
}

#define NET(n, mac, index, speed)                                                                  \
    "trib" n "/ 755\n"                                                                             \
    "trib" n "/addr_len 444: 6\n"                                                                  \
    "trib" n "/address 444: 02:54:" mac "\n"                                                       \
    "trib" n "/carrier -> RUN/port/h7/" n ".state/carrier\n"                                       \
    "trib" n "/dev_id 444: 0x0\n"                                                                  \
    "trib" n "/dev_port 444: 0\n"                                                                  \
    "trib" n "/device -> /sys/class/infiniband/trib" n "/device\n"                                 \
    "trib" n "/ifindex 444: " index "\n"                                                           \
    "trib" n "/mtu 444: 4200\n"                                                                    \
    "trib" n "/operstate -> RUN/port/h7/" n ".state/operstate\n"                                   \
    "trib" n "/speed 444: " speed "\n"                                                             \
    "trib" n "/type 444: 1\n"

static void ports_have_interfaces(void **state)
{
    struct made *m = *state;
    struct fab_node h = listed_host(2);
    char path[80];

    snprintf(path, sizeof(path), "%s/trib0", m->dir); /* which may be there */
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(tree_net(&m->rd, &h, m->dir), 0);
    assert_string_equal(listed(m), NET("0", "0a:0b:0c:0d", "1073741824", "400000")
                                       NET("1", "c1:d2:e3:f4", "1073741825", "800000"));
    assert_int_equal(tree_net(&m->rd, &h, m->dir), -EEXIST);
}

/* A path of the run directory that does not fit. */
static void a_run_directory_without_room_is_refused(void **state)
{
    struct made *m = *state;
    struct fab_node h = listed_host(1);
    struct captured c;
    struct rundir rd = {.path = "/proc/nowhere"};

    captured_begin(&c, stderr);
    assert_int_equal(tree_infiniband(&rd, &h, m->dir), -ENOENT);
    assert_int_equal(tree_net(&rd, &h, m->dir), -ENOENT);
    captured_end(&c);
    assert_int_equal(tree_infiniband(&rd, &h, "/proc/nowhere"), -ENOENT);
    assert_int_equal(tree_net(&rd, &h, "/proc/nowhere"), -ENOENT);
    assert_int_equal(tree_infiniband_verbs(&h, "/proc/nowhere"), -ENOENT);
}

/* Without a port there is nothing, and no mistake. */
static void no_port_is_no_file(void **state)
{
    struct made *m = *state;
    struct fab_node h = listed_host(0);

    assert_int_equal(tree_infiniband(&m->rd, &h, m->dir), 0);
    assert_int_equal(tree_net(&m->rd, &h, m->dir), 0);
    assert_string_equal(listed(m), "");
    assert_int_equal(tree_infiniband_verbs(&h, m->dir), 0);
    assert_string_equal(listed(m), "abi_version 444: 6\n");
}

static void each_port_is_behind_a_bridge_of_its_own(void **state)
{
    char path[PCI_PATH];

    (void)state;
    tree_pci_device(0, path);
    assert_string_equal(path, "/sys/devices/pci7472:00/7472:00:00.0/7472:01:00.0");
    tree_pci_device(31, path);
    assert_string_equal(path, "/sys/devices/pci7472:00/7472:00:1f.0/7472:20:00.0");
}

static void buses_are_links_and_may_be_there(void **state)
{
    struct made *m = *state;
    struct fab_node h = listed_host(2);

    assert_int_equal(tree_pci_buses(&h, m->dir), 0);
    assert_int_equal(tree_pci_buses(&h, m->dir), 0);
    assert_string_equal(listed(m),
                        "7472:01 -> /sys/devices/pci7472:00/7472:00:00.0/pci_bus/7472:01\n"
                        "7472:02 -> /sys/devices/pci7472:00/7472:00:01.0/pci_bus/7472:02\n");
    assert_int_equal(tree_pci_buses(&h, "/proc/nowhere"), -ENOENT);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_written_once_with_its_directories),
        TEST(a_path_that_does_not_fit_is_refused),
        TEST(hcas_are_as_the_kernel_shows_them),
        TEST(hcas_have_character_devices),
        TEST(ports_have_interfaces),
        TEST(a_run_directory_without_room_is_refused),
        TEST(no_port_is_no_file),
        TEST(each_port_is_behind_a_bridge_of_its_own),
        TEST(buses_are_links_and_may_be_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
