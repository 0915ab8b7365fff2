/* SPDX-License-Identifier: BSD-3-Clause */
/* What a conf's port becomes for DPDK, and why it is refused. */
#include "io/port/port_spec.h"

#include "tests/support/captured.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#define NOT_THERE                                                                                  \
    "tributary: port \"net_af_packet0,iface=nosuch0,x=1\": found no interface nosuch0, expected "  \
    "one of "
#define FRAMES ",blocksz=36864,framesz=4608,framecnt=512"

static char dir[] = "/tmp/test_port.XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    char cmd[64];

    (void)state;
    snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
    return system(cmd);
}

/* Reads a port as number 3; what it said on stderr is in said. */
static int port(const char *text, struct port_spec *s, const char **said)
{
    static struct captured c;
    int rc;

    captured_begin(&c, stderr);
    rc = port_spec_read(s, text, dir, 3);
    *said = captured_end(&c);
    return rc;
}

static void refused(const char *text, int rc, const char *says)
{
    struct port_spec s;
    const char *said;
    char want[512];

    snprintf(want, sizeof(want), "tributary: port \"%s\": %s\n", text, says);
    assert_int_equal(port(text, &s, &said), rc);
    assert_string_equal(said, want);
}

/* A listening socket, or one that nobody listens at any more. */
static int listener(const char *name, bool keep)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", dir, name);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    assert_int_equal(listen(fd, 1), 0);
    if (!keep)
        close(fd);
    return fd;
}

static void a_vhost_socket_is_in_the_run_directory_or_at_its_path(void **state)
{
    char text[128], want[256], path[64];
    struct port_spec s;
    const char *said;
    struct stat st;

    (void)state;
    assert_int_equal(port("vhost:x.sock", &s, &said), 0);
    snprintf(want, sizeof(want), "net_vhost_port3,iface=%s/x.sock,queues=1", dir);
    assert_string_equal(s.args, want);
    assert_string_equal(s.iface, "");
    assert_string_equal(said, "");
    snprintf(text, sizeof(text), "vhost:%s/y.sock", dir);
    assert_int_equal(port(text, &s, &said), 0);
    snprintf(want, sizeof(want), "net_vhost_port3,iface=%s/y.sock,queues=1", dir);
    assert_string_equal(s.args, want);
    assert_false(port_spec_is_xdp(&s));
    assert_int_equal(port_spec_mtu(&s), 0);
    /* what a killed process left is removed */
    listener("z.sock", false);
    snprintf(path, sizeof(path), "%s/z.sock", dir);
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(port("vhost:z.sock", &s, &said), 0);
    assert_int_equal(lstat(path, &st), -1);
}

static void a_vhost_socket_that_cannot_be_made_is_refused(void **state)
{
    char text[300], says[200], long_name[120];
    int fd = listener("used", true), file;

    (void)state;
    refused("vhost:a,b", -EINVAL, "found a comma in the path, expected none");
    snprintf(says, sizeof(says), "cannot make a socket in %s/none/: No such file or directory",
             dir);
    refused("vhost:none/x", -ENOENT, says);
    refused("vhost:used", -EADDRINUSE,
            "found another process that listens at its socket: Address already in use");
    close(fd);
    snprintf(text, sizeof(text), "%s/file", dir);
    file = open(text, O_CREAT | O_WRONLY, 0600);
    close(file);
    refused("vhost:file", -EEXIST, "found something that is no socket at its path: File exists");
    memset(long_name, 'x', sizeof(long_name));
    long_name[108 - strlen(dir) - 1] =
        0; /* with dir and a slash as long as a socket's name may not be */
    snprintf(text, sizeof(text), "vhost:%s", long_name);
    refused(text, -ENAMETOOLONG, "found a path too long for a socket: File name too long");
    long_name[107 - strlen(dir) - 1] = 0;
    snprintf(text, sizeof(text), "vhost:%s", long_name);
    {
        struct port_spec s;
        const char *said;

        assert_int_equal(port(text, &s, &said), 0);
    }
}

static void other_devices_keep_their_arguments(void **state)
{
    char text[600];
    struct port_spec s;
    const char *said;

    (void)state;
    assert_int_equal(port("net_null0,size=64", &s, &said), 0);
    assert_string_equal(s.args, "net_null0,size=64");
    assert_string_equal(s.iface, "");
    memset(text, 'x', sizeof(text));
    text[sizeof(s.args) - sizeof(FRAMES)] = 0;
    assert_int_equal(port(text, &s, &said), 0);
    assert_string_equal(s.args, text);
    text[sizeof(s.args) - sizeof(FRAMES)] = 'x';
    text[sizeof(s.args) - sizeof(FRAMES) + 1] = 0;
    assert_int_equal(port(text, &s, &said), -ENAMETOOLONG);
    assert_non_null(strstr(said, "\": found too many arguments: File name too long\n"));
}

static void an_interface_is_there_and_may_be_opened(void **state)
{
    struct port_spec s;
    const char *said;
    int raw = socket(AF_PACKET, SOCK_RAW, 0);

    (void)state;
    refused("net_af_packet0", -EINVAL, "found no interface, expected \",iface=NAME\"");
    refused("net_af_xdp0,queue=1", -EINVAL, "found no interface, expected \",iface=NAME\"");
    assert_int_equal(port("net_af_packet0,iface=nosuch0,x=1", &s, &said), -EINVAL);
    assert_memory_equal(said, NOT_THERE, strlen(NOT_THERE));
    assert_non_null(strstr(said, " lo"));
    if (raw < 0)
        skip(); /* without CAP_NET_RAW */
    close(raw);
    assert_int_equal(port("net_af_packet0,iface=lo", &s, &said), 0);
    assert_string_equal(s.args, "net_af_packet0,iface=lo" FRAMES);
    assert_string_equal(s.iface, "lo");
    assert_int_equal(port_spec_mtu(&s), 65536);
    assert_int_equal(port("net_af_packet0,iface=lo,framesz=4096", &s, &said), 0);
    assert_string_equal(s.args, "net_af_packet0,iface=lo,framesz=4096");
    assert_int_equal(port("net_af_packet0,iface=lo,blocksz=4096", &s, &said), 0);
    assert_string_equal(s.args, "net_af_packet0,iface=lo,blocksz=4096");
    assert_int_equal(port("net_af_xdp0,iface=lo", &s, &said), 0);
    assert_string_equal(s.args, "net_af_xdp0,iface=lo");
    assert_true(port_spec_is_xdp(&s));
}

static void what_dpdk_does_not_make_is_named(void **state)
{
    static const struct {
        struct port_spec s;
        int rc, want;
        const char *says;
    } rows[] = {
        {{.text = "net_af_packet0,iface=lo", .iface = "lo"},
         -EPERM,
         -EPERM,
         "tributary: port \"net_af_packet0,iface=lo\": DPDK cannot open the interface: Operation "
         "not permitted\n"},
        {{.text = "net_nil0"},
         0,
         -ENODEV,
         "tributary: port \"net_nil0\": found a device that DPDK does not make, expected "
         "vhost:PATH, "
         "a PCI address, or net_af_packet, net_af_xdp, net_tap, net_pcap, net_null, net_vhost with "
         "a "
         "number and their arguments: No such device\n"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct captured c;
        int rc;

        captured_begin(&c, stderr);
        rc = port_spec_refuse(&rows[i].s, rows[i].rc);
        assert_string_equal(captured_end(&c), rows[i].says);
        assert_int_equal(rc, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vhost_socket_is_in_the_run_directory_or_at_its_path),
        cmocka_unit_test(a_vhost_socket_that_cannot_be_made_is_refused),
        cmocka_unit_test(other_devices_keep_their_arguments),
        cmocka_unit_test(an_interface_is_there_and_may_be_opened),
        cmocka_unit_test(what_dpdk_does_not_make_is_named),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
