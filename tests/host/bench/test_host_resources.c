/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory left to a process by its control groups, of version 1 and 2, and their ancestors. */
#include "host/bench/host_resources.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[64];

static void put(const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static size_t left(const char *groups)
{
    char path[128];

    put("groups", groups);
    snprintf(path, sizeof(path), "%s/groups", root);
    return host_resources_cgroup(path, root);
}

static void the_least_of_all_groups_counts(void **state)
{
    (void)state;
    put("a/memory.max", "8000000\n");
    put("a/memory.current", "3000000\n");
    put("a/memory.stat", "anon 1\ninactive_file 1000000\nactive_file 7\n");
    put("a/b/memory.max", "max\n");
    put("a/b/memory.current", "1000\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/memory.usage_in_bytes", "5\n");
    put("memory/x/memory.limit_in_bytes", "5000000\n");
    put("memory/x/memory.usage_in_bytes", "6000000\n");
    put("memory/x/memory.stat", "inactive_file 9\ntotal_inactive_file 2500000\n");
    assert_true(left("0::/a\n") == 6000000);
    assert_true(left("0::/a/b\n") == 6000000); /* the one above */
    assert_true(left("0::/a/not/there\n") == 6000000);
    assert_true(left("0::/\n") == SIZE_MAX);
    assert_true(left("4:memory:/x\n0::/\n") == 1500000);
    assert_true(left("4:cpu,memory:/x\n0::/a\n") == 1500000);
    assert_true(left("4:memory:/\n0::/a\n") == 6000000);
    assert_true(left("3:cpu:/x\n") == SIZE_MAX);
}

/* Each at its boundaries, in a directory of its own. */
static void one_group_has_what_its_limit_leaves(void **state)
{
    static const struct {
        const char *max, *current, *stat; /* NULL: no such file */
        size_t left;
    } rows[] = {
        {"1000", "400", NULL, 600},
        {"1000", "400", "inactive_file 100\n", 700},
        {"1000", "400", "file 5\ninactive_file 400\n", 1000},
        {"1000", "400", "inactive_file 401\n", 1000},
        {"1000", "999", "active_file 5\n", 1},
        {"1000", "1000", NULL, 0},
        {"1000", "1001", NULL, 0},
        {"1000", "1001", "inactive_file 1\n", 0},
        {"1000", "1001", "inactive_file 2\n", 1},
        {"1000", NULL, NULL, SIZE_MAX},
        {NULL, "400", NULL, SIZE_MAX},
        {"max", "400", NULL, SIZE_MAX},
        {"4611686018427387902", "0", NULL, 4611686018427387902},
        {"4611686018427387903", "0", NULL, SIZE_MAX}, /* a quarter of all: none */
        {"0", "0", NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[64], group[64];

        snprintf(group, sizeof(group), "0::/row%zu\n", i);
        snprintf(name, sizeof(name), "row%zu/memory.max", i);
        if (rows[i].max)
            put(name, rows[i].max);
        snprintf(name, sizeof(name), "row%zu/memory.current", i);
        if (rows[i].current)
            put(name, rows[i].current);
        snprintf(name, sizeof(name), "row%zu/memory.stat", i);
        if (rows[i].stat)
            put(name, rows[i].stat);
        assert_true(left(group) == rows[i].left);
    }
}

static void only_groups_of_memory_count(void **state)
{
    static const struct {
        const char *groups;
        bool counts;
    } rows[] = {
        {"4:memory:/m\n", true},
        {"4:cpu,memory:/m\n", true},
        {"4:memory,cpu:/m\n", true},
        {"4:cpu,memory,x:/m\n", true},
        {"4:mem:/m\n", false},
        {"4:name=memory:/m\n", false},
        {"no colon\n", false},
        {"4:memory\n", false},
        {"", false},
        {"1:cpu:/\n4:memory:/m\n", true},
    };

    (void)state;
    put("memory/m/memory.limit_in_bytes", "1000\n");
    put("memory/m/memory.usage_in_bytes", "100\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (left(rows[i].groups) != (rows[i].counts ? 900 : SIZE_MAX))
            fail_msg("%s", rows[i].groups);
    assert_true(host_resources_cgroup("/nonexistent", root) == SIZE_MAX);
}

/* ---- this machine ---- */

static unsigned long long kib_of(const char *file, const char *key)
{
    unsigned long long v = 0;
    char line[256];
    FILE *f = fopen(file, "r");

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0)
            v = strtoull(line + strlen(key), NULL, 10);
    if (f)
        fclose(f);
    return v;
}

static void addresses_are_what_the_limit_leaves(void **state)
{
    struct rlimit was, lim;
    struct host_resources r;
    size_t used = kib_of("/proc/self/status", "VmSize:") * 1024;
    char err[160] = "";

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
    lim = was;
    lim.rlim_cur = used + (64ull << 30);
    if (was.rlim_cur != RLIM_INFINITY || setrlimit(RLIMIT_AS, &lim))
        skip();
    host_resources_find(&r);
    assert_in_range(r.addresses, (64ull << 30) - (16 << 20), (64ull << 30) + (16 << 20));
    assert_true(host_resources_has(1, 1, ".", err, sizeof(err)));
    assert_string_equal(err, "");
    assert_false(host_resources_has(1, 128ull << 30, ": so it is.", err, sizeof(err)));
    assert_non_null(strstr(err, " MiB of addresses (ulimit -v), expected about 131072: so it is."));
    setrlimit(RLIMIT_AS, &was);
    host_resources_find(&r);
    assert_true(r.addresses == SIZE_MAX);
    assert_true(host_resources_has(1, 128ull << 30, ".", err, sizeof(err)));
}

static void memory_is_the_least_that_there_is(void **state)
{
    unsigned long long all = kib_of("/proc/meminfo", "MemTotal:") * 1024;
    struct host_resources r;
    char err[160] = "", says[160];

    (void)state;
    host_resources_find(&r);
    assert_true(r.bytes > 0 && r.bytes <= all);
    assert_true(!strcmp(r.by, "MemAvailable") || !strcmp(r.by, "the cgroup's limit"));
    assert_false(host_resources_has(all + 1, 1, "", err, sizeof(err)));
    snprintf(says, sizeof(says), " MiB of memory (%s), expected about %llu", r.by,
             (all + 1 + 524288) / 1048576);
    assert_non_null(strstr(err, says));
}

static void there_is_a_core_at_least(void **state)
{
    cpu_set_t was, one;
    unsigned n = host_resources_cores();

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(was), &was), 0);
    assert_in_range(n, 1, CPU_COUNT(&was));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &was))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(host_resources_cores(), 1);
    sched_setaffinity(0, sizeof(was), &was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_of_all_groups_counts),
        cmocka_unit_test(one_group_has_what_its_limit_leaves),
        cmocka_unit_test(only_groups_of_memory_count),
        cmocka_unit_test(addresses_are_what_the_limit_leaves),
        cmocka_unit_test(memory_is_the_least_that_there_is),
        cmocka_unit_test(there_is_a_core_at_least),
    };
    char rm[96];
    int rc;

    snprintf(root, sizeof(root), "/tmp/test_room.XXXXXX");
    if (!mkdtemp(root))
        return 1;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(rm, sizeof(rm), "rm -rf %s", root);
    return system(rm) || rc;
}
