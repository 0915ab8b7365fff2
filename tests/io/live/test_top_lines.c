/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of trib top: each panel whole, in each order, scrolled, and cut to the terminal. */
#include "io/live/top.h"

#include "tests/io/live/looked.h"

#define MAX 40

/* "LOOK|text\n" of each line. */
static const char *frame(struct top *t, unsigned width, unsigned height)
{
    static const char *const looks[] = {"plain", "title", "heads", "good", "warning", "bad"};
    static char text[MAX * (TOP_WIDTH + 10)];
    static struct top_line lines[MAX];
    unsigned n = top_lines(t, width, height, lines);
    size_t at = 0;

    assert_true(n >= 1 && n <= (height ? height : 1));
    *text = 0;
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s|%s\n", looks[lines[i].look],
                               lines[i].text);
    return text;
}

static struct top top_of(struct live_fabric *x, enum top_panel panel)
{
    return (struct top){.live = {.n = 1, .fab = {x}}, .panel = panel, .seconds = 0.5};
}

#define TITLE                                                                                      \
    "title|lab: dilation 20, fabric time 2.000 s, the last 500.000 ms of it; hand-offs p99 "       \
    "1000.0 us late, 50.000 us of fabric time; 1 of 3 processes do not answer\n"
#define SUMMARY                                                                                    \
    "bad|links 4, down 1; paused 1, queued 12kB, ECN marks 17, drops 23; groups 2, jobs 2, "       \
    "programs 1\n"
#define LINKS_HEAD                                                                                 \
    "heads|from to       GB/s  used                         queue pauses state    drops\n"
#define H0_S                                                                                       \
    "warning|h0   s       10.00   20% [####                ]    12k   1.2M paused loss=0.1% 2 "    \
    "no_route, 12 queue_full\n"
#define S_H0                                                                                       \
    "warning|s    h0       0.00    0% [                    ]      0      0 loss=0.1% 9 lost\n"
#define H1_S  "plain|h1:0 s:1      0.00    0% [                    ]      0      0 dup=1%   \n"
#define S_H1  "plain|s:1  h1:0     0.00    0% [                    ]      0      0 dup=1%   \n"
#define H1_S2 "bad|h1:1 s:2      0.00    0% [                    ]      0      0 down     \n"
#define G_S   "plain|g    s        0.00     - [                    ]      0      0 up       \n"
#define S_G   "plain|s    g        5.00  100% [####################]      0      0 up       \n"

static void links_come_in_the_order_that_is_asked_for(void **state)
{
    static const struct {
        enum top_sort sort;
        const char *rows, *name;
    } orders[] = {
        {TOP_BY_USED, S_G H0_S S_H0 H1_S S_H1 H1_S2 G_S, "used"},
        {TOP_BY_QUEUE, H0_S S_H0 H1_S S_H1 H1_S2 G_S S_G, "queue"},
        {TOP_BY_PAUSES, H0_S S_H0 H1_S S_H1 H1_S2 G_S S_G, "pauses"},
        {TOP_BY_DROPS, H0_S S_H0 H1_S S_H1 H1_S2 G_S S_G, "drops"},
        {TOP_BY_NAME, H0_S S_H0 H1_S S_H1 H1_S2 G_S S_G, "name"},
    };
    struct live_fabric *x = looked_new();
    struct top t = top_of(x, TOP_LINKS);
    char want[4096];

    (void)state;
    for (unsigned i = 0; i < LEN(orders); i++) {
        t.sort = orders[i].sort;
        snprintf(want, sizeof(want),
                 TITLE SUMMARY LINKS_HEAD "%sheads|links by %s, 1 to 7 of 7; every 0.5 s; fabric 1 "
                                          "of 1; h: help, q: end\n",
                 orders[i].rows, orders[i].name);
        assert_string_equal(frame(&t, 200, 30), want);
    }
    /* the last in the conf may be the first of each */
    x->now.dir[7].v[PORT_queue_bytes] = 12346;
    t.sort = TOP_BY_QUEUE;
    assert_non_null(strstr(frame(&t, 200, 30), "drops\nplain|s    g "));
    x->now.dir[7].v[PORT_queue_bytes] = 0;
    x->now.dir[7].v[PORT_paused_ps] = 2501 * US;
    t.sort = TOP_BY_PAUSES;
    assert_non_null(strstr(frame(&t, 200, 30), "drops\nplain|s    g "));
    x->now.dir[7].v[PORT_lost] = 15;
    t.sort = TOP_BY_DROPS;
    assert_non_null(strstr(frame(&t, 200, 30), "drops\nwarning|s    g "));
    looked_free(x);
}

static void a_frame_fits_the_terminal(void **state)
{
    struct live_fabric *x = looked_new();
    struct top t = top_of(x, TOP_LINKS);

    (void)state;
    assert_string_equal(frame(&t, 200, 6), TITLE SUMMARY LINKS_HEAD S_G H0_S
                        "heads|links by used, 1 to 2 of 7; every 0.5 s; fabric 1 of 1; h: help, q: "
                        "end\n");
    t.scroll = 5;
    t.paused = true;
    assert_string_equal(frame(&t, 200, 6), TITLE SUMMARY LINKS_HEAD H1_S2 G_S
                        "heads|links by used, 6 to 7 of 7; every 0.5 s, held; fabric 1 of 1; h: "
                        "help, q: end\n");
    t.scroll = 7; /* beyond the last */
    assert_string_equal(frame(&t, 200, 6), TITLE SUMMARY LINKS_HEAD G_S
                        "heads|links by used, 7 to 7 of 7; every 0.5 s, held; fabric 1 of 1; h: "
                        "help, q: end\n");
    assert_int_equal(t.scroll, 6);
    t.scroll = 0;
    assert_string_equal(frame(&t, 200, 1), TITLE);
    assert_string_equal(frame(&t, 200, 0), TITLE);
    assert_string_equal(frame(&t, 10, 2), "title|lab: dilat\nbad|links 4, d\n");
    assert_string_equal(frame(&t, 5, 1), "title|lab: \n");
    assert_int_equal(strlen(frame(&t, 10000, 1)), strlen(TITLE));
    looked_free(x);
}

static void groups_and_processes_have_a_row_each(void **state)
{
    struct live_fabric *x = looked_new();
    struct top t = top_of(x, TOP_GROUPS);

    (void)state;
    assert_string_equal(
        frame(&t, 200, 30), TITLE SUMMARY
        "heads|job      kind      tree group owner        state      members    slots used    "
        "reduced  nodes\n"
        "plain|00000abc reduce       2     7 h1           busy        2 of 2       5 of 64       "
        "1000  s\n"
        "warning|123456789 multimem     -     8 -            joining     0 of 1        0 of 3      "
        "    0  s\n"
        "heads|groups, 1 to 2 of 2; every 0.5 s; fabric 1 of 1; h: help, q: end\n");
    t.scroll = 9;
    assert_non_null(strstr(frame(&t, 200, 30), "nodes\nwarning|123456789 "));
    assert_int_equal(t.scroll, 1);
    t = top_of(x, TOP_PROCESSES);
    assert_string_equal(
        frame(&t, 200, 30), TITLE SUMMARY
        "heads|host                  pid program          state      frames from    frames to\n"
        "plain|-                      41 p0               ready\n"
        "bad|-                       0 p1               ended\n"
        "plain|-                       0 p2               ready\n"
        "plain|h1                     77 prog             connected           10           20\n"
        "heads|processes, 1 to 4 of 4; every 0.5 s; fabric 1 of 1; h: help, q: end\n");
    t.scroll = 1;
    assert_non_null(strstr(frame(&t, 200, 30), "frames to\nbad|-  "));
    t.scroll = 3;
    assert_non_null(strstr(frame(&t, 200, 30), "frames to\nplain|h1 "));
    t.scroll = 4;
    frame(&t, 200, 30);
    assert_int_equal(t.scroll, 3);
    looked_free(x);
}

/* Without what is wrong a fabric is good; a pause or a drop is a warning. */
static void the_summary_is_as_bad_as_the_worst(void **state)
{
    struct live_fabric *x = looked_new();
    struct top t = top_of(x, TOP_GROUPS);

    (void)state;
    x->now.dir[4].v[PORT_down] = 0;
    x->now.dir[5].v[PORT_down] = 1; /* the other direction of a link is not counted again */
    assert_non_null(strstr(frame(&t, 200, 30), "\nwarning|links 4, down 0; paused 1, "));
    x->now.dir[0].v[PORT_paused] = 0;
    assert_non_null(strstr(frame(&t, 200, 30), "\nwarning|links 4, down 0; paused 0, "));
    memset(x->now.dir[0].v, 0, sizeof(x->now.dir[0].v));
    memset(x->now.dir[1].v, 0, sizeof(x->now.dir[1].v));
    live_groups_free(&x->now);
    x->now.n_slots = 0;
    assert_string_equal(
        frame(&t, 200, 30), TITLE
        "good|links 4, down 0; paused 0, queued 0B, ECN marks 0, drops 0; groups 0, jobs 0, "
        "programs 0\n"
        "heads|job      kind      tree group owner        state      members    slots used    "
        "reduced  nodes\n"
        "plain|no groups\n"
        "heads|groups, 0 to 0 of 0; every 0.5 s; fabric 1 of 1; h: help, q: end\n");
    looked_free(x);
}

static void several_groups_of_a_job_are_one_job(void **state)
{
    struct live_fabric *x = looked_new();
    struct top t = top_of(x, TOP_GROUPS);

    (void)state;
    x->now.group[1].job = x->now.group[0].job;
    assert_non_null(strstr(frame(&t, 200, 30), "groups 2, jobs 1, programs 1\n"));
    looked_free(x);
}

static void help_lists_the_keys(void **state)
{
    static const char
        *const first = "plain|l g p      links, groups, processes\n",
               *const last = "plain|Rates, and what is used of a link, are of fabric time since "
                             "the last look; other figures so far.\n"
                             "heads|links by used, 0 to 0 of 0; every 0.5 s; fabric 2 of 2; h: "
                             "help, q: end\n";
    struct live_fabric *x = looked_new();
    struct top t = top_of(x, TOP_LINKS);
    const char *text;

    (void)state;
    t.help = true;
    t.live.fab[1] = x;
    t.live.n = 2;
    t.fabric = 3; /* as if it were the second of two */
    text = frame(&t, 200, 30);
    assert_int_equal(t.fabric, 1);
    assert_memory_equal(text + strlen(TITLE SUMMARY), first, strlen(first));
    assert_string_equal(text + strlen(text) - strlen(last), last);
    looked_free(x);
}

static void without_a_fabric_that_is_said(void **state)
{
    struct top t = {.fabric = 3};

    (void)state;
    assert_string_equal(frame(&t, 80, 24), "bad|no fabric is up\n");
    assert_int_equal(t.fabric, 0);
    assert_string_equal(top_panel_name(TOP_PROCESSES), "processes");
    assert_null(top_panel_name(TOP_PANELS));
    assert_null(top_panel_name(TOP_PANELS + 1));
    assert_string_equal(top_sort_name(TOP_BY_NAME), "name");
    assert_null(top_sort_name(TOP_SORTS));
    assert_null(top_sort_name(TOP_SORTS + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_come_in_the_order_that_is_asked_for),
        cmocka_unit_test(a_frame_fits_the_terminal),
        cmocka_unit_test(groups_and_processes_have_a_row_each),
        cmocka_unit_test(the_summary_is_as_bad_as_the_worst),
        cmocka_unit_test(several_groups_of_a_job_are_one_job),
        cmocka_unit_test(help_lists_the_keys),
        cmocka_unit_test(without_a_fabric_that_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
