/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service's run directory with a host whose user has put links into it: what root, and the service,
 * make there stays there, and nobody is let through a link. In a /run of its own; needs root.
 */
#include "system/own_path.h"
#include "io/access.h"
#include "machine/port_counters.h"
#include "machine/port_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SERVICE = 61234, USER = 4240 };
#define DIR_OF "/run/tributary/lab/lab"
#define LIST   "system.posix_acl_access"

static struct rundir rd = {.path = DIR_OF};
static bool in_own_run;

static void as(uid_t uid)
{
    assert_int_equal(seteuid(0), 0);
    if (uid)
        assert_int_equal(seteuid(uid), 0);
}

static void file(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static void user_link(const char *to, const char *path)
{
    as(0);
    assert_int_equal(symlink(to, path), 0);
    assert_int_equal(lchown(path, USER, USER), 0);
}

static unsigned entries(const char *path)
{
    struct dirent *e;
    DIR *d = opendir(path);
    unsigned n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static bool has_list(const char *path)
{
    return getxattr(path, LIST, NULL, 0) > 0;
}

static int setup(void **state)
{
    static const char *const dirs[] = {DIR_OF, DIR_OF "/proc", DIR_OF "/port", DIR_OF "/port/h0",
                                       DIR_OF "/port/h1"};

    (void)state;
    if (geteuid() || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "/run", "tmpfs", 0, "mode=755"))
        return 0; /* each test is skipped */
    in_own_run = true;
    umask(022);
    if (mkdir("/run/victim", 0777) || mkdir("/run/tributary", 0755) ||
        mkdir("/run/tributary/lab", 0755) || chown("/run/tributary/lab", SERVICE, SERVICE))
        return -1;
    as(SERVICE);
    for (unsigned i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        if (mkdir(dirs[i], 0700))
            return -1;
    as(0);
    return 0;
}

/* As access_give() leaves a host's directory: sticky, and its users write to it. */
static void open_h0(void)
{
    as(0);
    assert_int_equal(chmod(DIR_OF "/port/h0", S_ISVTX | 0770), 0);
}

/* ---- who may use what ---- */

static void a_link_among_the_sockets_opens_nothing(void **state)
{
    static struct fab_node nodes[2] = {{.name = "h0", .kind = FAB_HOST, .n_ports = 1},
                                       {.name = "h1", .kind = FAB_HOST, .n_ports = 1}};
    static uint16_t hosts[2] = {0, 1};
    struct fab_access all = {.name = "daemon", .n_hosts = 1, .hosts = hosts};
    struct fabric f = {.name = "lab",
                       .n_nodes = 2,
                       .n_hosts = 2,
                       .nodes = nodes,
                       .hosts = hosts,
                       .access = &all,
                       .n_access = 1};
    bool mine[2] = {true, true};

    (void)state;
    if (!in_own_run)
        skip();
    as(SERVICE);
    file(DIR_OF "/proc/secret");
    file(DIR_OF "/port/h0/0.0.sock");
    file(DIR_OF "/port/h0/host.token");
    file(DIR_OF "/port/h1/host.token");
    file(DIR_OF "/proc/one.ready");
    assert_int_equal(access_give(&rd, &f, mine, "one"), 0);
    assert_true(has_list(DIR_OF "/port/h0") && has_list(DIR_OF "/port/h0/0.0.sock"));
    assert_true(has_list(DIR_OF "/port/h0/host.token"));
    assert_false(has_list(DIR_OF "/port/h1") || has_list(DIR_OF "/port/h1/host.token"));
    user_link("../../proc/secret", DIR_OF "/port/h0/x.sock");
    as(SERVICE);
    assert_int_equal(access_give(&rd, &f, NULL, "one"), 0);
    assert_true(has_list(DIR_OF "/proc/one.ready"));
    assert_int_equal(access_give(&rd, &f, mine, "one"), -EPERM);
    assert_false(has_list(DIR_OF "/proc/secret"));
    as(0);
    unlink(DIR_OF "/port/h0/x.sock");
}

static void a_later_socket_is_for_the_same_users(void **state)
{
    char first[256], later[256];
    ssize_t n;

    (void)state;
    if (!in_own_run)
        skip();
    as(SERVICE);
    file(DIR_OF "/port/h0/0.4.sock");
    assert_int_equal(access_give_slot(&rd, "h0", 0, 4), 0);
    n = getxattr(DIR_OF "/port/h0/0.0.sock", LIST, first, sizeof(first));
    assert_true(n > 0);
    assert_int_equal(getxattr(DIR_OF "/port/h0/0.4.sock", LIST, later, sizeof(later)), n);
    assert_memory_equal(first, later, n);
    file(DIR_OF "/port/h1/0.0.sock"); /* of nobody beside root */
    file(DIR_OF "/port/h1/0.4.sock");
    assert_int_equal(access_give_slot(&rd, "h1", 0, 4), 0);
    assert_false(has_list(DIR_OF "/port/h1/0.4.sock"));
    as(0);
}

/* ---- what is made in a host's directory ---- */

static void nothing_is_made_behind_a_users_link(void **state)
{
    uid_t who[] = {0, SERVICE};
    char at[64];

    (void)state;
    if (!in_own_run)
        skip();
    open_h0();
    assert_int_equal(chmod("/run/victim", 0777), 0);
    user_link("/run/victim", DIR_OF "/port/h0/0.state");
    for (unsigned i = 0; i < 2; i++) {
        snprintf(at, sizeof(at), DIR_OF "/port/h0/0.counters.%u", (unsigned)who[i]);
        user_link("/run/victim", at);
        as(who[i]);
        assert_int_equal(port_counters_make(&rd, "h0", 0), -EPERM);
        assert_int_equal(port_state_make(&rd, "h0", 0), -EPERM);
        assert_int_equal(port_state_write(&rd, "h0", 0, false), -EPERM);
        assert_int_equal(entries("/run/victim"), 0);
    }
    as(0);
    unlink(DIR_OF "/port/h0/0.state");
}

static void users_read_the_state_that_the_service_writes(void **state)
{
    char text[16] = "";
    struct stat st;
    FILE *f;

    (void)state;
    if (!in_own_run)
        skip();
    open_h0();
    as(SERVICE);
    umask(077);
    assert_int_equal(port_state_write(&rd, "h0", 0, true), 0);
    as(0);
    umask(022);
    assert_int_equal(port_state_make(&rd, "h0", 0), 0); /* root's trib exec: they are there */
    as(SERVICE);
    assert_int_equal(port_state_write(&rd, "h0", 0, false), 0);
    as(0);
    assert_int_equal(stat(DIR_OF "/port/h0/0.state", &st), 0);
    assert_true(st.st_uid == SERVICE && (st.st_mode & 0777) == 0755);
    f = fopen(DIR_OF "/port/h0/0.state/state", "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    assert_int_equal(fstat(fileno(f), &st), 0);
    fclose(f);
    assert_string_equal(text, "1: DOWN\n");
    assert_int_equal(st.st_mode & 0777, 0644);
}

static void the_end_removes_nothing_behind_a_users_link(void **state)
{
    (void)state;
    if (!in_own_run)
        skip();
    open_h0();
    assert_int_equal(mkdir("/run/tributary/lab/other", 0700), 0);
    file("/run/tributary/lab/other/precious");
    assert_int_equal(chown("/run/tributary/lab/other", SERVICE, SERVICE), 0);
    user_link("/run/tributary/lab/other", DIR_OF "/port/h0/z.counters");
    as(SERVICE);
    rundir_remove(&rd);
    as(0);
    assert_int_equal(access("/run/tributary/lab/other/precious", F_OK), 0);
    assert_int_equal(access(DIR_OF "/port/h0/0.state", F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_among_the_sockets_opens_nothing),
        cmocka_unit_test(a_later_socket_is_for_the_same_users),
        cmocka_unit_test(nothing_is_made_behind_a_users_link),
        cmocka_unit_test(users_read_the_state_that_the_service_writes),
        cmocka_unit_test(the_end_removes_nothing_behind_a_users_link),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
