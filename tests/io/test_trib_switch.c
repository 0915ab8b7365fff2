/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program trib-switch as a process: it starts, reports that it is ready, answers telemetry,
 * forwards frames between processes, and leaves no files behind.
 */
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/io/guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char program[PATH_MAX + 16], base[64], run[96], conf[96];

static const char conf_text[] = "name = \"pair\";\n"
                                "dilation = 100;\n"
                                "processes = \"per_node\";\n"
                                "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 1;\n"
                                "  host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; };\n"
                                "  spine_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; };\n";

/* ---- processes ---- */

static pid_t started[32];
static unsigned n_started;

/* Runs trib-switch with args; its output goes to out (a file) or nowhere. */
static pid_t start(const char *out, const char *const *args)
{
    const char *argv[16] = {program};
    pid_t pid = fork();
    int fd;

    if (pid > 0 && n_started < 32)
        started[n_started++] = pid;
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; args[i]; i++)
        argv[i + 1] = args[i];
    fd = open(out ? out : "/dev/null", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execv(program, (char *const *)argv);
    _exit(127);
}

static int finish(pid_t pid, int sig)
{
    int status = -1;

    if (sig)
        kill(pid, sig);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool wait_file(const char *name)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/%s", run, name);
    for (unsigned i = 0; i < 1000; i++, usleep(10000))
        if (!access(path, F_OK))
            return true;
    return false;
}

static char *slurp(const char *path)
{
    static char text[65536];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

    if (f)
        fclose(f);
    text[n] = 0;
    return text;
}

static json_t *ask(const char *cmd, int want_rc)
{
    const char *args[] = {"--ask", run, cmd, NULL};
    char out[128], *text;
    pid_t pid;

    snprintf(out, sizeof(out), "%s/answer", base);
    pid = start(out, args);
    assert_int_equal(finish(pid, 0), want_rc);
    text = slurp(out);
    assert_non_null(strstr(text, "--ask is deprecated"));
    text = strchr(text, '{');
    return text ? json_loads(text, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

static int setup(void **state)
{
    FILE *f;

    (void)state;
    snprintf(base, sizeof(base), "/tmp/trib-sw-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(run, sizeof(run), "%s/run", base);
    snprintf(conf, sizeof(conf), "%s/pair.conf", base);
    f = fopen(conf, "w");
    fputs(conf_text, f);
    fclose(f);
    return 0;
}

static int teardown(void **state)
{
    char cmd[128];

    (void)state;
    /* Removes files and processes of a failed case. */
    for (unsigned i = 0; i < n_started; i++)
        if (waitpid(started[i], NULL, WNOHANG) == 0)
            finish(started[i], SIGKILL);
    n_started = 0;
    snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
    return system(cmd);
}

/* ---- cases ---- */

static void wrong_arguments_are_named(void **state)
{
    static const struct {
        const char *args[5], *says;
    } rows[] = {
        {{"CONF", "--bogus", "1"}, "found --bogus, expected an option of trib-switch"},
        {{"CONF", "--nodes"}, "--nodes: found nothing, expected LIST"},
        {{"CONF", "--nodes", "leaf0,leaf7"}, "found \"leaf7\""},
        {{"CONF", "--proc", "nobody"}, "found \"nobody\""},
        {{"CONF", "--dilation", "fast"}, "found \"fast\", expected a whole number"},
        {{"CONF", "--dilation", "0"}, "expected a whole number from 1"},
        {{"CONF", "other.conf"}, "found \"other.conf\" after CONF, expected an option"},
        {{"CONF", "--lcores", "1-"}, "expected CPUs"},
        {{"missing.conf"}, "missing.conf"},
        {{NULL}, "found no CONF, expected the fabric's conf file"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *args[10] = {"--run", run};
        char out[128];

        for (unsigned n = 0; rows[i].args[n]; n++)
            args[n + 2] = strcmp(rows[i].args[n], "CONF") ? rows[i].args[n] : conf;
        snprintf(out, sizeof(out), "%s/out", base);
        assert_int_not_equal(finish(start(out, args), 0), 0);
        if (!strstr(slurp(out), rows[i].says))
            fail_msg("case %u: expected \"%s\" in: %s", i, rows[i].says, slurp(out));
    }
}

static void it_comes_up_once_and_leaves_nothing_behind(void **state)
{
    const char *args[] = {conf, "--run", run, NULL};
    char out[128];
    pid_t pid = start(NULL, args);

    (void)state;
    assert_true(wait_file("proc/all.ready"));
    snprintf(out, sizeof(out), "%s/second", base);
    assert_int_equal(finish(start(out, args), 0), 1);
    assert_non_null(strstr(slurp(out), "runs already"));
    assert_int_equal(finish(pid, SIGTERM), 0);
    assert_int_equal(access(run, F_OK), -1);
}

static void it_answers_about_its_ports(void **state)
{
    const char *args[] = {conf, "--run", run, NULL};
    pid_t pid = start(NULL, args);
    json_t *v;

    (void)state;
    assert_true(wait_file("proc/all.ready"));
    v = ask("/trib/ports", 0);
    assert_int_equal(json_object_size(v), 2 + 2 * 2 + 2);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(v, "leaf0:0"), "rx_frames")), 0);
    assert_non_null(json_object_get(json_object_get(v, "spine0:1"), "drop_no_route"));
    json_decref(v);
    v = ask("/trib/totals", 0);
    assert_non_null(json_object_get(json_object_get(v, "all"), "tx_frames"));
    json_decref(v);
    json_decref(ask("/trib/ports,leaf9:0", 1));
    json_decref(ask("/trib/ports,leaf0:65536", 1)); /* not port 0 */
    json_decref(ask("/trib/ports,leaf0:0x", 1));
    json_decref(ask("/trib/ports,leaf0:", 1));
    assert_int_equal(finish(pid, SIGINT), 0);
}

/* User and system time of a process, in clock ticks of 10 ms. */
static long cpu_ticks(pid_t pid)
{
    char path[64];
    const char *p;
    long user = 0, sys = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    p = strrchr(slurp(path), ')');
    assert_non_null(p);
    assert_int_equal(
        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &sys), 2);
    return user + sys;
}

static void idle_it_costs_next_to_nothing(void **state)
{
    const char *args[] = {conf, "--run", run, NULL};
    pid_t pid = start(NULL, args);
    long before;

    (void)state;
    assert_true(wait_file("proc/all.ready"));
    usleep(200000);
    before = cpu_ticks(pid);
    sleep(2);
    assert_true(cpu_ticks(pid) - before <=
                10); /* 5 %; a loop that spins takes 100, or its share of a busy machine */
    assert_int_equal(finish(pid, SIGTERM), 0);
}

static void frames_pass_between_processes(const char *const *procs, unsigned n)
{
    struct fab_errors errs = {0};
    struct fabric *f = fabric_load(conf, &errs);
    struct rte_mempool *pool = test_pool(512);
    struct guest a, b;
    pid_t pid[8];
    json_t *v;
    char out[128];
    const char *args[] = {conf, "--proc", NULL, "--run", run, NULL};

    assert_non_null(f);
    for (unsigned i = 0; i < n; i++) {
        args[2] = procs[i];
        snprintf(out, sizeof(out), "%s/log.%s", base, procs[i]);
        pid[i] = start(out, args);
    }
    for (unsigned i = 0; i < n; i++) {
        char ready[64];

        snprintf(ready, sizeof(ready), "proc/%s.ready", procs[i]);
        assert_true(wait_file(ready));
    }
    guest_open(&a, run, f, "h0", pool);
    guest_open(&b, run, f, "h1", pool);
    assert_int_equal(exchange(&a, &b, f, 500), 500);
    v = ask("/trib/totals", 0);
    assert_int_equal(json_object_size(v), n);
    json_decref(v);
    guest_close(&a);
    guest_open(&a, run, f, "h0", pool); /* the slot serves the next process */
    assert_int_equal(exchange(&a, &b, f, 100), 100);
    guest_close(&a);
    guest_close(&b);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(finish(pid[i], SIGTERM), 0);
    assert_int_equal(access(run, F_OK), -1);
    fabric_free(f);
}

/* A process of a host that sends as fast as its NIC accepts, until it is killed. */
static int flood_main(const char *dir)
{
    struct rundir rd;
    struct fabric *f;
    struct guest g;
    uint32_t src, dst;

    snprintf(run, sizeof(run), "%s", dir);
    test_eal_init();
    if (rundir_open(&rd, run, NULL, false) || !(f = rundir_fabric(&rd)))
        return 1;
    src = fabric_node(f, "h0")->ip_of_port[0];
    dst = fabric_node(f, "h1")->ip_of_port[0];
    guest_open(&g, run, f, "h0", test_pool(256));
    for (uint32_t psn = 0;; psn++) {
        struct rte_mbuf *m = datagram(g.pool, src, dst, 0, psn);

        while (!io_port_tx(g.port, 1, &m, 1)) {
            guest_ring(&g);
            usleep(50);
        }
        if (psn % 16 == 0)
            guest_ring(&g);
        if (getppid() == 1)
            return 0;
    }
}

static unsigned kills(void)
{
    const char *n = getenv("TRIB_TEST_KILLS");

    return n ? (unsigned)atoi(n) : 20;
}

static void killed_hosts_leave_the_switch_alive_and_serving(void **state)
{
    const char *args[] = {conf, "--run", run, "--dilation", "1", NULL};
    pid_t sw = start(NULL, args);
    struct rte_mempool *pool = test_pool(512);
    struct fab_errors errs = {0};
    struct fabric *f = fabric_load(conf, &errs);
    struct guest a, b;

    (void)state;
    assert_true(wait_file("proc/all.ready"));
    guest_open(&b, run, f, "h1", pool);
    for (unsigned k = 0; k < kills(); k++) {
        struct rte_mbuf *m[32];
        unsigned got = 0;
        pid_t pid = fork();

        if (!pid) {
            execl("/proc/self/exe", "test_trib_switch", "flood", run, (char *)NULL);
            _exit(127);
        }
        for (unsigned i = 0; got < 1000 && i < 100000; i++) {
            uint16_t n = io_port_rx(b.port, ENDPOINT_DATA, m, 32);

            rte_pktmbuf_free_bulk(m, n);
            got += n;
            if (!n)
                usleep(100);
        }
        assert_true(got >= 1000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_int_equal(kill(sw, 0), 0);
    }
    guest_open(&a, run, f, "h0", pool);
    assert_true(exchange(&a, &b, f, 200) >= 200);
    guest_close(&a);
    guest_close(&b);
    assert_int_equal(finish(sw, SIGTERM), 0);
    fabric_free(f);
}

static void a_process_per_node_carries_frames(void **state)
{
    static const char *const procs[] = {"leaf0", "leaf1", "spine0"};

    (void)state;
    frames_pass_between_processes(procs, 3);
}

/* An ARP request that comes in by a port to the outside, and the answer that leaves by it. */
static void a_port_to_the_outside_is_answered(void **state)
{
    static const uint8_t ask_h0[42] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,  0, 0, 0, 0, 9, 8, 6,               /* Ethernet */
        0,    1,    8,    0,    6,    4,    0,  1, 2, 0, 0, 0, 0, 9, 10, 0, 0, 99, /* who asks */
        0,    0,    0,    0,    0,    0,    10, 0, 0, 1}; /* who has h0's address */
    static const uint8_t header[24] = {0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0,
                                       0,    0,    0,    0,    0, 0, 1, 0, 1, 0, 0, 0};
    const char *args[] = {conf, "--run", run, NULL};
    uint32_t record[4] = {0, 0, sizeof(ask_h0), sizeof(ask_h0)};
    char in[96], out[96];
    bool answered = false;
    pid_t pid;
    FILE *f;

    (void)state;
    snprintf(in, sizeof(in), "%s/in.pcap", base);
    snprintf(out, sizeof(out), "%s/out.pcap", base);
    f = fopen(in, "w");
    fwrite(header, sizeof(header), 1, f);
    fwrite(record, sizeof(record), 1, f);
    fwrite(ask_h0, sizeof(ask_h0), 1, f);
    fclose(f);
    f = fopen(conf, "w");
    fprintf(
        f,
        "name = \"outside\"; dilation = 1; mtu = 1024;\n"
        "nodes = ( { name = \"h0\"; kind = \"host\"; }, { name = \"s0\"; kind = \"switch\"; } );\n"
        "links = ( { a = \"s0\"; b = \"h0\"; rate = \"10Gb/s\"; latency = \"1us\"; },\n"
        "          { a = \"s0\"; port = \"net_pcap0,rx_pcap=%s,tx_pcap=%s\";\n"
        "            rate = \"10Gb/s\"; latency = \"1us\"; } );\n",
        in, out);
    fclose(f);
    pid = start(NULL, args);
    assert_true(wait_file("proc/fabric.ready"));
    usleep(500000); /* the driver writes its file when the process ends */
    assert_int_equal(finish(pid, SIGTERM), 0);
    f = fopen(out, "r");
    assert_non_null(f);
    fseek(f, 24, SEEK_SET);
    for (answered = false; !answered && fread(record, sizeof(record), 1, f);) {
        uint8_t m[2048] = {0};

        assert_true(record[2] <= sizeof(m));
        assert_int_equal(fread(m, record[2], 1, f), 1);
        answered = m[12] == 8 && m[13] == 6 && m[21] == 2 && m[28] == 10 && m[31] == 1;
    }
    fclose(f);
    assert_true(answered);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        T(wrong_arguments_are_named),
        T(it_comes_up_once_and_leaves_nothing_behind),
        T(it_answers_about_its_ports),
        T(idle_it_costs_next_to_nothing),
        T(a_process_per_node_carries_frames),
        T(a_port_to_the_outside_is_answered),
        T(killed_hosts_leave_the_switch_alive_and_serving),
    };
    char self[PATH_MAX];
    ssize_t n;

    if (argc == 3 && !strcmp(argv[1], "flood"))
        return flood_main(argv[2]);
    n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n < 0)
        return 1;
    self[n] = 0;
    for (unsigned up = 0; up < 3; up++) /* BUILD/tests/io/test_trib_switch */
        *strrchr(self, '/') = 0;
    snprintf(program, sizeof(program), "%s/trib-switch", self);
    if (getenv("TRIB_SWITCH"))
        snprintf(program, sizeof(program), "%s", getenv("TRIB_SWITCH"));
    if (access(program, X_OK)) {
        printf("found no %s: make programs builds it\n", program);
        return 77;
    }
    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
