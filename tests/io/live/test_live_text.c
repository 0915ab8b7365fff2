/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of trib status, whole. */
#include "tests/io/live/looked.h"
#include "tests/support/captured.h"

static const char *text_of(struct live_fabric *x, unsigned parts)
{
    static struct captured c;
    struct live l = {.n = x ? 1 : 0, .fab = {x}};

    captured_begin(&c, stdout);
    live_text(&l, parts);
    return captured_end(&c);
}

static const char head[] =
    "fabric lab: dilation 20, fabric time 2.000 s, the last 500.000 ms of it; hand-offs p99 1000.0 "
    "us late, 50.000 us of fabric time; 1 of 3 processes do not answer\n";
static const char links[] = "  from  to    state             GB/s   used    bytes  queue  peak  "
                            "pauses   paused (us)  ECN  drops\n"
                            "  h0    s     paused loss=0.1%  10.00  20.0%   6.0G   12k    10k   "
                            "1234567  2500.0       17   2 no_route, 12 queue_full\n"
                            "  s     h0    loss=0.1%         0.00   0.0%    0      0      0     0  "
                            "      0.0          0    9 lost\n"
                            "  h1:0  s:1   dup=1%            0.00   0.0%    0      0      0     0  "
                            "      0.0          0    -\n"
                            "  s:1   h1:0  dup=1%            0.00   0.0%    0      0      0     0  "
                            "      0.0          0    -\n"
                            "  h1:1  s:2   down              0.00   0.0%    0      0      0     0  "
                            "      0.0          0    -\n"
                            "  g     s     up                0.00   -       0      0      0     0  "
                            "      0.0          0    -\n"
                            "  s     g     up                5.00   100.0%  2.5G   0      0     0  "
                            "      0.0          0    -\n";
static const char groups[] =
    "  job        kind      tree  group  owner  state    members  slots used  reduced  nodes\n"
    "  00000abc   reduce    2     7      h1     busy     2 of 2   5 of 64     1000     s\n"
    "  123456789  multimem  -     8      -      joining  0 of 1   0 of 3      0        s\n";

static void the_parts_that_are_asked_for_have_a_row_each(void **state)
{
    struct live_fabric *x = looked_new();

    (void)state;
    for (unsigned parts = 0; parts <= (LIVE_LINKS | LIVE_GROUPS); parts++) {
        char want[4096];

        snprintf(want, sizeof(want), "%s%s%s", head, parts & LIVE_LINKS ? links : "",
                 parts & LIVE_GROUPS ? groups : "");
        assert_string_equal(text_of(x, parts), want);
    }
    looked_free(x);
}

static void a_group_is_open_when_nothing_goes_on(void **state)
{
    struct live_fabric *x = looked_new();
    struct live_at two[2] = {{.node = LEAF, .slots = 64, .slots_used = 5},
                             {.node = H0, .slots = 32, .slots_used = 1}};
    struct live_at *one = x->now.group[0].at;

    (void)state;
    x->now.group[0].busy = false;
    x->now.group[0].at = two;
    x->now.group[0].n_at = 2;
    assert_non_null(
        strstr(text_of(x, LIVE_GROUPS),
               "  00000abc   reduce    2     7      h1     open     2 of 2   6 of 96     "
               "1000     s,h0\n"));
    x->now.group[0].at = one;
    x->now.group[0].n_at = 1;
    looked_free(x);
}

static void what_is_not_there_is_said(void **state)
{
    struct live_fabric *x = looked_new();

    (void)state;
    live_groups_free(&x->now);
    assert_string_equal(strchr(text_of(x, LIVE_GROUPS), '\n'), "\n  no groups\n");
    assert_string_equal(text_of(NULL, LIVE_GROUPS), "no fabric is up\n");
    looked_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_that_are_asked_for_have_a_row_each),
        cmocka_unit_test(a_group_is_open_when_nothing_goes_on),
        cmocka_unit_test(what_is_not_there_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
