/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory left to a process by its control groups, of version 1 and 2, and their ancestors. */
#include "host/bench/host_resources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_least_of_all_groups_counts)};
    char rm[96];
    int rc;

    snprintf(root, sizeof(root), "/tmp/test_room.XXXXXX");
    if (!mkdtemp(root))
        return 1;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(rm, sizeof(rm), "rm -rf %s", root);
    return system(rm) || rc;
}
