/* What `trib plan` prints. */
#include "tests/fabric/load.h"

#include <stdlib.h>

static char *plan_of(const char *conf)
{
    struct fabric *f = load_file(conf);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    fabric_plan(f, out);
    fclose(out);
    fabric_free(f);
    return text;
}

static void the_plan_names_nodes_links_trees_and_what_they_need(void **state)
{
    static const char *const lines[] = {
        "8 hosts, 4 switches, 12 cables, 2 aggregation trees\n",
        "mtu 4096, ecmp balanced, dilation auto, 4 processes can share a host\n",
        "  h7      host   0 of 1  10.0.0.8  02:54:0a:00:00:08  fabric   -\n",
        "  spine1  spine  2       10.1.0.4  02:54:0a:01:00:04  fabric   64 groups, 16384 slots, "
        "window 256\n",
        "  leaf0:4-spine0:0  400Gb/s  300ns    1MiB    2048    off  on   -\n",
        "  1     spine1  2      8      leaf1   spine1  4         256    1280\n",
        "  1     spine1  2      8      spine1  -       2         256    768\n",
        "  fabric   12     h0 h1 h2",
    };
    char *text = plan_of("conf/leaf-spine-8.conf");

    (void)state;
    for (unsigned i = 0; i < LEN(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("not in the plan: %s", lines[i]);
    free(text);
}

static void columns_are_aligned(void **state)
{
    char *text = plan_of(THREE_TIER), *head = strstr(text, "  name              rate"), *line;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_names_nodes_links_trees_and_what_they_need),
        cmocka_unit_test(columns_are_aligned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
