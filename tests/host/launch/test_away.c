/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank for a launcher on another machine: where its fabric is found, what the rank is started with, and that the
 * process between the two copies what each says until one ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/launch/away.h"
#include "machine/page_server.h"
#include "io/port/port.h"
#include "machine/shared.h"
#include "machine/token.h"
#include "tests/host/launch/started.h"
#include "tests/support/captured.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char conf[] = "name = \"faraway\"; dilation = 10;\n"
                           "single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; "
                           "latency = \"300ns\"; }; };\n";

static struct {
    struct rundir rd;
    struct page_server *pages;
    struct fabric *fab;
    char base[64], dir[128], file[80], keep[PATH_MAX + 48];
} net;

/* In the default place below base; it has a clock and no process of a switch. */
static int fabric_start(void **state)
{
    struct fab_errors errs;
    struct page_server_cfg pc = {.name = "test", .dilation = 10};
    char token[TOKEN_BYTES];
    FILE *f;

    (void)state;
    snprintf(net.base, sizeof(net.base), "/tmp/tribaway.XXXXXX");
    if (!mkdtemp(net.base))
        return -1;
    setenv("XDG_RUNTIME_DIR", net.base, 1);
    unsetenv("TRIB_RUN");
    snprintf(net.file, sizeof(net.file), "%s/f.conf", net.base);
    f = fopen(net.file, "w");
    if (!f || fputs(conf, f) < 0 || fclose(f))
        return -1;
    net.fab = fabric_load(net.file, &errs);
    if (!net.fab || rundir_default(net.dir, sizeof(net.dir), NULL, "faraway") ||
        rundir_open(&net.rd, net.dir, NULL, true) || rundir_install(&net.rd, net.fab) ||
        io_eal_init("test", NULL, 128, NULL, 0))
        return -1;
    pc.dir = net.rd.path;
    pc.fab = net.fab;
    return page_server_start(&net.pages, &net.rd.sh, &pc) || token_make(&net.rd, "h1", token);
}

static int fabric_stop(void **state)
{
    char cmd[128];

    (void)state;
    page_server_stop(net.pages);
    rundir_close(&net.rd);
    fabric_free(net.fab);
    snprintf(cmd, sizeof(cmd), "rm -rf %s", net.base);
    return system(cmd);
}

/* ---- a rank behind a socket ---- */

static int to, said; /* socket, what it prints on standard error */
static pid_t between;

static void start(const char *fabric, const char *host, const char *preload)
{
    int sv[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
    said = memfd_create("said", 0);
    between = fork();
    if (!between) {
        dup2(sv[1], 0);
        dup2(sv[1], 1);
        dup2(said, 2);
        _exit(away_rank(fabric, host, preload));
    }
    close(sv[1]);
    to = sv[0];
}

static const char *line(void)
{
    static char text[1024];
    size_t n = 0;
    struct pollfd p = {.fd = to, .events = POLLIN};

    while (n < sizeof(text) - 1 && poll(&p, 1, 20000) == 1 && read(to, text + n, 1) == 1 &&
           text[n] != '\n')
        n++;
    text[n] = 0;
    return text;
}

static void say(const char *text)
{
    assert_int_equal(write(to, text, strlen(text)), strlen(text));
}

static const char *ends(int with)
{
    static char text[2048];
    ssize_t n;
    int status;

    assert_int_equal(waitpid(between, &status, 0), between);
    n = pread(said, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = 0;
    if (status != with << 8)
        fail_msg("status %x: %s", (unsigned)status, text);
    close(to);
    close(said);
    return text;
}

static void expect_rank(const char *dir, const char *preload)
{
    char expected[512];

    snprintf(expected, sizeof(expected),
             "trib-perf 3 of h1 in %s told 1 preload %s token 1 death 9 dfl dfl dfl free,", dir,
             preload);
    assert_memory_equal(line(), expected, strlen(expected));
}

static void a_fabric_is_found_in_its_default_place(void **state)
{
    (void)state;
    start("faraway", "h1", NULL);
    expect_rank(net.dir, "none");
    say("hello\n");
    assert_string_equal(line(), "hello");
    say("again\n");
    assert_string_equal(line(), "again");
    say("exit 5\n");
    assert_string_equal(line(), ""); /* the end */
    assert_string_equal(ends(5), "");
}

/* The rank ends with the launcher. */
static void the_end_of_the_launcher_is_the_ranks(void **state)
{
    (void)state;
    start("faraway", "h1", NULL);
    expect_rank(net.dir, "none");
    shutdown(to, SHUT_WR);
    assert_string_equal(line(), "");
    assert_string_equal(ends(20), "");
}

static void where_the_environment_says_it_is_looked_for_first(void **state)
{
    char dir[PATH_MAX];

    (void)state;
    setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
    setenv("TRIB_RUN", net.dir, 1);
    start("faraway", "h1", NULL);
    expect_rank(net.dir, "none");
    say("exit 0\n");
    assert_string_equal(ends(0), "");
    /* One that is another fabric's is passed over. */
    setenv("XDG_RUNTIME_DIR", net.base, 1);
    setenv("TRIB_RUN", "/nowhere", 1);
    start("faraway", "h1", NULL);
    expect_rank(net.dir, "none");
    say("exit 0\n");
    assert_string_equal(ends(0), "");
    setenv("TRIB_RUN", "", 1);
    start("faraway", "h1", NULL);
    expect_rank(net.dir, "none");
    say("exit 0\n");
    ends(0);
    unsetenv("TRIB_RUN");
    assert_int_equal(rundir_default(dir, sizeof(dir), NULL, "faraway"), 0);
    assert_string_equal(dir, net.dir);
}

static void a_library_is_preloaded_or_refused(void **state)
{
    (void)state;
    unsetenv("LD_PRELOAD");
    start("faraway", "h1", "/nowhere/libx.so");
    expect_rank(net.dir, "/nowhere/libx.so");
    say("exit 0\n");
    ends(0);
    start("faraway", "h1", "/no:where");
    assert_string_equal(line(), "");
    ends(1);
}

/* ---- not found ---- */

static void expect_none(const char *fabric, const char *host, const char *where)
{
    char expected[1024];

    start(fabric, host, NULL);
    snprintf(
        expected, sizeof(expected),
        "trib-perf: found no fabric %s with host %s that user %u runs on this machine, neither "
        "in %s nor among its processes; expected trib up there, by this user\n",
        fabric, host, (unsigned)getuid(), where);
    assert_string_equal(ends(1), expected);
}

static void what_is_not_found_is_named(void **state)
{
    char where[PATH_MAX + 256], other[PATH_MAX];

    (void)state;
    unsetenv("TRIB_RUN");
    expect_none("faraway", "h9", net.dir);
    snprintf(other, sizeof(other), "%.*snear", (int)(strlen(net.dir) - strlen("faraway")), net.dir);
    expect_none("near", "h1", other);
    setenv("TRIB_RUN", "/nowhere", 1);
    snprintf(where, sizeof(where), "/nowhere nor in %s", other);
    expect_none("near", "h1", where);
    setenv("TRIB_RUN", net.dir, 1); /* where another fabric is */
    snprintf(where, sizeof(where), "%s nor in %s", net.dir, other);
    expect_none("near", "h1", where);
    unsetenv("TRIB_RUN");
}

/* ---- among processes ---- */

/* The trib-keep beside this program is a script for a while. */
static void list_as(const char *lines)
{
    FILE *f = fopen(net.keep, "w");

    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n[ \"$*\" = fabrics ] && printf '%s'\n", lines);
    fclose(f);
    assert_int_equal(chmod(net.keep, 0755), 0);
}

/* Where trib-keep is installed: no user calls it by name. */
static void an_installed_keep_says_where_it_is(void **state)
{
    char self[PATH_MAX] = "", lib[PATH_MAX + 16], own[PATH_MAX + 32], line[2 * PATH_MAX];

    (void)state;
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    *strrchr(self, '/') = 0;
    snprintf(lib, sizeof(lib), "%s/../libexec", self);
    snprintf(own, sizeof(own), "%s/tributary", lib);
    assert_int_equal(mkdir(lib, 0755) | mkdir(own, 0755), 0);
    snprintf(net.keep, sizeof(net.keep), "%s/trib-keep", own);
    setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
    snprintf(line, sizeof(line), "me\\t%u\\t2\\t%s\\n", geteuid(), net.dir);
    list_as(line);
    start("faraway", "h1", NULL);
    expect_rank(net.dir, "none");
    say("exit 0\n");
    ends(0);
    assert_int_equal(unlink(net.keep) | rmdir(own) | rmdir(lib), 0);
    setenv("XDG_RUNTIME_DIR", net.base, 1);
}

static void processes_say_where_it_is(void **state)
{
    char self[PATH_MAX] = "", lines[3 * PATH_MAX], where[PATH_MAX];
    unsigned uid = geteuid();

    (void)state;
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    *strrchr(self, '/') = 0;
    snprintf(net.keep, sizeof(net.keep), "%s/trib-keep", self);
    setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
    snprintf(where, sizeof(where), "/nowhere/tributary-%u/faraway", uid);
    snprintf(lines, sizeof(lines), "me\\t%u\\t1\\t/nowhere\\nme\\t%u\\t2\\t%s\\n", uid, uid,
             net.dir);
    list_as(lines);
    start("faraway", "h1", NULL);
    expect_rank(net.dir, "none");
    say("exit 0\n");
    ends(0);
    snprintf(lines, sizeof(lines), "me\\t%u\\t2\\t%s\\n", uid + 1, net.dir); /* another user's */
    list_as(lines);
    expect_none("faraway", "h1", where);
    snprintf(lines, sizeof(lines), "me\\tx\\t2\\t%s\\n", net.dir);
    list_as(lines);
    expect_none("faraway", "h1", where);
    snprintf(lines, sizeof(lines), "%s\\n", net.dir);
    list_as(lines);
    expect_none("faraway", "h1", where);
    unlink(net.keep);
    setenv("XDG_RUNTIME_DIR", net.base, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fabric_is_found_in_its_default_place),
        cmocka_unit_test(the_end_of_the_launcher_is_the_ranks),
        cmocka_unit_test(where_the_environment_says_it_is_looked_for_first),
        cmocka_unit_test(a_library_is_preloaded_or_refused),
        cmocka_unit_test(what_is_not_found_is_named),
        cmocka_unit_test(an_installed_keep_says_where_it_is),
        cmocka_unit_test(processes_say_where_it_is),
    };

    if (started_is(argc, argv))
        return started_main(argc, argv);
    setenv("TRIB_HOST", "another", 1); /* what is inherited does not count */
    setenv("TRIB_DEATHS_TOLD", "0", 1);
    setenv("TRIB_MACHINE", "another", 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
    return cmocka_run_group_tests(tests, fabric_start, fabric_stop);
}
