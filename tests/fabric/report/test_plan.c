/* SPDX-License-Identifier: BSD-3-Clause */
/* What `trib plan` prints. */
#include "tests/fabric/load.h"

#include <stdlib.h>

static char *plan_of(const char *conf, bool all)
{
    struct fabric *f = load_file(conf);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    fabric_plan(f, all, out);
    fclose(out);
    fabric_free(f);
    return text;
}

static void the_plan_names_nodes_links_trees_and_what_they_need(void **state)
{
    static const char *const lines[] = {
        "8 hosts, 4 switches, 12 cables, 2 aggregation trees\n",
        "mtu 4096, ecmp balanced, dilation auto, 64 processes can share a host\n",
        "  h7      host   0 of 1  10.0.0.8  02:54:0a:00:00:08  fabric   -\n",
        "  spine1  spine  2       10.1.0.4  02:54:0a:01:00:04  fabric   64 groups, 16384 slots, "
        "window 256\n",
        "  leaf0:4-spine0:0  400Gb/s  300ns    1MiB    2048    off  on   -\n",
        "  1     spine1  2      8      leaf1   spine1  4         256    1280\n",
        "  1     spine1  2      8      spine1  -       2         256    768\n",
        "  fabric   12     h0 h1 h2",
    };
    char *text = plan_of("conf/leaf-spine-8.conf", false);

    (void)state;
    for (unsigned i = 0; i < LEN(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("not in the plan: %s", lines[i]);
    free(text);
}

static void columns_are_aligned(void **state)
{
    char *text = plan_of(THREE_TIER, false), *head = strstr(text, "  name              rate"),
         *line;
    size_t column;

    (void)state;
    assert_non_null(head);
    column = (size_t)(strstr(head, "latency") - head);
    for (unsigned i = 0; i < 24; i++) {
        line = strchr(head, '\n') + 1;
        assert_memory_equal(line + column, "300ns", 5);
        head = line;
    }
    free(text);
}

static unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void a_plan_of_many_nodes_sums_up_and_lists_all_when_asked(void **state)
{
    static const char *const lines[] = {
        "1024 hosts, 560 switches, 20480 cables, 528 aggregation trees\n",
        "  leaf      4       32        1024    256    32       400GB/s   12.8TB/s   12.8TB/s\n",
        "  512    n0s0    nvswitch  8      8      yes       64 groups, 16384 slots, window 256\n",
        "  2048   n0g0:0-n0s0:0      5 each  1000Gb/s  300ns ",
        "  16     spine0      2      1024   33           32                8448\n",
    };
    char *text = plan_of("conf/h100-superpod-1024.conf", false);

    (void)state;
    for (unsigned i = 0; i < LEN(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("not in the plan: %s", lines[i]);
    assert_in_range(count_lines(text), 20, 40);
    free(text);
    text = plan_of("conf/h100-superpod-1024.conf", true);
    assert_non_null(strstr(text, "  n127g7   host"));
    assert_non_null(strstr(text, "\n  n127g7:3-n127s3:7  "));
    assert_in_range(count_lines(text), 5 * 1024 + 560 + 6144, 20000);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_names_nodes_links_trees_and_what_they_need),
        cmocka_unit_test(columns_are_aligned),
        cmocka_unit_test(a_plan_of_many_nodes_sums_up_and_lists_all_when_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
