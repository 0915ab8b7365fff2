/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a PCI device cannot be a port, by a /sys and a /dev of the test's own. */
#include "io/port/port_pci.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/test_pci.XXXXXX";

static void command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void command(const char *fmt, ...)
{
    char text[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    assert_int_equal(system(text), 0);
}

/* A device of a class, bound to a driver and in an IOMMU group, or in none (""). */
static void device(const char *address, const char *class, const char *driver, const char *group)
{
    char at[200];

    snprintf(at, sizeof(at), "%s/bus/pci/devices/%s", root, address);
    command("mkdir -p %s && echo %s >%s/class && echo 0x8086 >%s/vendor && echo 0x1572 >%s/device",
            at, class, at, at, at);
    if (*driver)
        command("ln -s ../../drivers/%s %s/driver", driver, at);
    if (*group)
        command("ln -s ../../../kernel/iommu_groups/%s %s/iommu_group", group, at);
}

static void says(const char *spec, const char *expected)
{
    char text[400];

    port_pci_why(root, root, spec, text, sizeof(text));
    if (!strstr(text, expected))
        fail_msg("%s: found \"%s\", expected \"%s\"", spec, text, expected);
}

static void addresses_are_told_from_devices(void **state)
{
    (void)state;
    assert_true(port_pci_is("0000:01:00.0"));
    assert_true(port_pci_is("01:00.1,rx_vec_en=1"));
    assert_false(port_pci_is("net_af_packet0,iface=eth1"));
    assert_false(port_pci_is("vhost:/tmp/a.sock"));
    assert_false(port_pci_is(""));
}

static void each_state_has_its_reason(void **state)
{
    (void)state;
    device("0000:01:00.0", "0x020000", "", "7");
    device("0000:01:00.1", "0x030000", "nvidia", "7");
    device("0000:02:00.0", "0x020000", "i40e", "8");
    device("0000:03:00.0", "0x020700", "mlx5_core", "9");
    device("0000:04:00.0", "0x020000", "vfio-pci", "");
    device("0000:05:00.0", "0x020000", "vfio-pci", "11");
    device("0000:06:00.0", "0x020000", "vfio-pci", "12");
    command("mkdir %s/vfio && : >%s/vfio/12", root, root);
    says("0000:09:00.0", "found no PCI device 0000:09:00.0");
    says("09:00.0,x=1", "found no PCI device 0000:09:00.0");
    says("01:00.0",
         "without a driver, expected vfio-pci: dpdk-devbind.py --bind=vfio-pci 0000:01:00.0");
    says("0000:01:00.1", "class 0x030000, expected a NIC");
    says("02:00.0,rx_vec_en=1", "kernel's driver i40e, expected vfio-pci");
    says("03:00.0", "found it at mlx5_core, as expected");
    says("04:00.0", "without an IOMMU group");
    says("05:00.0", "vfio/11: No such file or directory");
    says("06:00.0", geteuid() ? "locked memory" : "no driver for 8086:1572");
}

static void a_short_text_is_cut(void **state)
{
    char text[24];

    (void)state;
    port_pci_why(root, root, "0000:09:00.0", text, sizeof(text));
    assert_string_equal(text, "found no PCI device 000");
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    command("rm -r %s", root);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_told_from_devices),
        cmocka_unit_test(each_state_has_its_reason),
        cmocka_unit_test(a_short_text_is_cut),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
