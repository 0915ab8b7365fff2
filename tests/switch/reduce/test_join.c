/* SPDX-License-Identifier: BSD-3-Clause */
/* JOIN: refusals name the reason, grants fit the free resources, and a refused group holds
 * nothing. */
#include "tests/switch/reduce/control.h"

enum spoilt {
    NOTHING,
    KEY,
    MTU,
    MTU_TOO_LARGE,
    MTU_NONE,
    TREE,
    MEMBERS,
    RANKS_PER_HOST,
    UNKNOWN_HOST,
    NOT_LISTED,
    OTHER_HOST
};

static void spoil(struct member *m, enum spoilt what)
{
    struct agg_fixture_group *g = &m->g;

    g->key += what == KEY;
    g->mtu = what == MTU ? 512 : what == MTU_TOO_LARGE ? 4096 : what == MTU_NONE ? 1000 : g->mtu;
    g->tree = what == TREE ? 99 : g->tree;
    if (what == MEMBERS || what == UNKNOWN_HOST)
        fab_members_add(&g->members, what == MEMBERS ? 7 : 800);
    if (what == RANKS_PER_HOST)
        g->members.ranks_per_host = 0;
    m->id = what == NOT_LISTED ? 3 : what == OTHER_HOST ? 0 : m->id;
}

static const struct {
    enum spoilt what;
    enum agg_status later, first; /* with other members joined; as the first member */
    const char *words;
} refusals[] = {
    {NOTHING, AGG_OK, AGG_OK, ""},
    {KEY, AGG_E_KEY, AGG_OK, ""},
    {MTU, AGG_E_MTU, AGG_OK, ""},
    {MTU_TOO_LARGE, AGG_E_MTU, AGG_E_MTU, "MTU 4096"},
    {MTU_NONE, AGG_E_MTU, AGG_E_MTU, "MTU 1000"},
    {TREE, AGG_E_TREE, AGG_E_TREE, "tree"},
    {MEMBERS, AGG_E_MISMATCH, AGG_OK, ""},
    {RANKS_PER_HOST, AGG_E_MISMATCH, AGG_E_PROTOCOL, ""},
    {UNKNOWN_HOST, AGG_E_MISMATCH, AGG_E_NOT_MEMBER, ""},
    {NOT_LISTED, AGG_E_NOT_MEMBER, AGG_E_NOT_MEMBER, "not in its own list"},
    {OTHER_HOST, AGG_E_NOT_MEMBER, AGG_E_NOT_MEMBER, "not where"},
};

static void every_wrong_join_is_refused_by_name(void **state)
{
    (void)state;
    for (unsigned r = 0; r < LEN(refusals); r++)
        for (int later = 0; later < 2; later++) {
            struct agg_fixture *b = agg_fixture_of(LEAVES, r + 1);
            struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, LEN(six));
            enum agg_status want = later ? refusals[r].later : refusals[r].first;

            if (later) {
                join_some(b, m, 2);
                join_some(b, m + 3, 3);
            }
            spoil(&m[2], refusals[r].what);
            join_some(b, m + 2, 1);
            if (m[2].status != want || (want && !strstr(m[2].text, refusals[r].words)))
                fail_msg("%d, %s: %s \"%s\"", refusals[r].what, later ? "later" : "first",
                         agg_status_name(m[2].status), m[2].text);
            if (want != AGG_OK)
                m[2].deaf = true; /* has nothing to give back */
            agg_fixture_destroy(b);
        }
}

static void a_join_of_another_version_is_refused_by_name(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 1);
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, LEN(six));
    struct agg_ctl c;

    (void)state;
    agg_fixture_fill_join(m, &c);
    c.version = AGG_VERSION + 1;
    m->state = MEMBER_ASKING;
    m->retry_ps = PS_NEVER;
    agg_fixture_say(m, AGG_JOIN, &c);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 10 * PS_PER_MS));
    expect(m, MEMBER_REFUSED, AGG_E_VERSION, "version");
    m->deaf = true;
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

static void a_switch_that_does_not_reduce_says_so(void **state)
{
    static const unsigned ids[] = {0, 1};
    struct agg_fixture *b = agg_fixture_of(
        LINKS
        "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },\n"
        "{ name = \"plain\"; role = \"leaf\"; }, { name = \"s\"; role = \"spine\"; reduce = { }; } "
        ");\n"
        "links = ( { a = (\"h0\", \"h1\"); b = \"plain\"; }, { a = \"plain\"; b = \"s\"; } );\n",
        1);
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, ids, 2);

    (void)state;
    m->an = fabric_node_index(b->f, fabric_node(b->f, "plain"));
    agg_fixture_join(m);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 10 * PS_PER_MS));
    expect(m, MEMBER_REFUSED, AGG_E_NO_REDUCTION, "does not reduce");
    m->deaf = true;
    agg_fixture_destroy(b);
}

static const struct {
    const char *reduce;
    uint32_t budget;
    enum agg_status want;
    const char *words;
} quotas[] = {
    {"reduce = { groups = 1; };\n", 0, AGG_E_QUOTA_GROUPS, "leaf0 has 1 groups, at most 1"},
    {"reduce = { slots = 23; window = 16; };\n", 0, AGG_E_QUOTA_SLOTS,
     "7 of 23 slots left, 8 needed"},
    {"reduce = { window = 16; };\n", 150, AGG_E_QUOTA_BUFFERS, "of 150 buffers left"},
};

static void what_is_over_quota_is_refused_by_name_and_granted_once_there_is_room(void **state)
{
    (void)state;
    for (unsigned q = 0; q < LEN(quotas); q++) {
        char conf[256];
        struct agg_fixture *b;
        struct member *one, *two;

        snprintf(conf, sizeof(conf), "%s%s%s", LINKS, quotas[q].reduce, SHAPE);
        b = agg_fixture_create(&(struct agg_fixture_cfg){
            .conf = conf, .seed = q + 1, .mbuf_budget = quotas[q].budget});
        one = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, 6);
        two = agg_fixture_group(b, 1, 8, 1024, 16, 1, six, 6);
        join_some(b, one, 6);
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(one[i].state, MEMBER_IN);
        join_some(b, two, 1);
        expect(two, MEMBER_REFUSED, quotas[q].want, quotas[q].words);
        for (unsigned i = 0; i < 6; i++)
            agg_fixture_leave(&one[i]);
        assert_true(agg_fixture_run(b, agg_fixture_all_left, 100 * PS_PER_MS));
        agg_fixture_settle(b, 5 * PS_PER_MS);
        nothing_is_held(b);
        join_some(b, two, 6);
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(two[i].state, MEMBER_IN);
        agg_fixture_destroy(b);
    }
}

/* The grant of a second group if the first one holds 16 slots; of_job: the number of groups with
 * its key, as in its JOIN. */
static const struct {
    uint32_t slots, asked, of_job, granted;
    const char *words;
} fits[] = {
    {32, 16, 0, 16, ""},
    {31, 16, 0, 15, "leaf0 has 15 of 31 slots left"},
    {24, 16, 0, 8, "leaf0 has 8 of 24 slots left"},
    {18, 2, 0, 2, ""}, /* not less than requested, though less than a message needs */
    {48, 16, 2, 16, ""},
    {40, 16, 2, 12, "leaf0 has 24 of 40 slots left"},
    {40, 16, 0x0201, 12, "spine0 has 24 of 40 slots left"}, /* of the parent's groups */
    {40, 16, 0xff, 8, "leaf0 has 24 of 40 slots left"},     /* no less than a message */
};

static void a_window_that_does_not_fit_is_granted_smaller_by_name(void **state)
{
    (void)state;
    for (unsigned k = 0; k < LEN(fits); k++) {
        char conf[256];
        struct agg_fixture *b;
        struct member *one, *two;

        snprintf(conf, sizeof(conf), "%sreduce = { slots = %u; window = 16; };\n%s", LINKS,
                 fits[k].slots, SHAPE);
        b = agg_fixture_create(&(struct agg_fixture_cfg){.conf = conf, .seed = k + 1});
        one = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, 6);
        two = agg_fixture_group(b, 0, 8, 1024, fits[k].asked, 1, six, 6);
        join_some(b, one, 6);
        for (unsigned i = 0; i < 6; i++) {
            two[i].g.key = 99;
            two[i].of_job = fits[k].of_job;
        }
        join_some(b, two, 6);
        for (unsigned i = 0; i < 6; i++) {
            uint32_t window = rte_be_to_cpu_32(two[i].granted.window);

            assert_int_equal(two[i].state, MEMBER_IN);
            if (i >= 3 && !strncmp(fits[k].words, "leaf0", 5))
                continue; /* of the other leaf */
            if (window != fits[k].granted || strcmp(two[i].granted.text, fits[k].words))
                fail_msg("%u of %u: %u, \"%s\"", k, i, window, two[i].granted.text);
        }
        for (unsigned i = 0; i < 6; i++)
            start(&two[i], floats(4000));
        if (fits[k].granted >= AGG_MSG_PKTS)
            assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
        agg_fixture_destroy(b);
    }
}

/* Each holds the only slots of one leaf: both are refused at the other one, nothing waits for
 * anything, and who comes again finds all that there is. On one tree its root lets in one of them.
 */
static void groups_that_each_hold_a_half_do_not_wait_for_each_other(void **state)
{
    (void)state;
    for (uint16_t tree = 0; tree < 2; tree++) {
        struct agg_fixture *b =
            agg_fixture_of(LINKS "reduce = { slots = 8; window = 8; };\n" SHAPE, 5);
        struct member *one = agg_fixture_group(b, 0, 7, 1024, 8, 1, six, 6);
        struct member *two = agg_fixture_group(b, tree, 8, 1024, 8, 1, six, 6);

        for (unsigned i = 0; i < 3; i++) {
            agg_fixture_join(&one[i]);
            agg_fixture_join(&two[3 + i]);
        }
        assert_true(agg_fixture_run(b, agg_fixture_all_in, 10 * PS_PER_MS));
        join_some(b, one + 3, 3);
        join_some(b, two, 3);
        for (unsigned i = 0; i < 6; i++) {
            bool got = one[i].state == MEMBER_IN, other = two[i].state == MEMBER_IN;

            if (tree == 0 && (got == other || got != (one[0].state == MEMBER_IN)))
                fail_msg("member %u: %d and %d", i, got, other);
            if (tree == 1 && (got != (i < 3) || other != (i >= 3)))
                fail_msg("member %u: %d and %d", i, got, other);
        }
        for (unsigned i = 0; i < 6; i++) {
            one[i].state == MEMBER_IN ? agg_fixture_leave(&one[i]) : (void)(one[i].deaf = true);
            two[i].state == MEMBER_IN ? agg_fixture_leave(&two[i]) : (void)(two[i].deaf = true);
        }
        assert_true(agg_fixture_run(b, agg_fixture_all_left, 100 * PS_PER_MS));
        agg_fixture_settle(b, 5 * PS_PER_MS);
        nothing_is_held(b);
        for (unsigned i = 0; i < 6; i++)
            one[i].deaf = two[i].deaf = true;
        one = agg_fixture_group(b, 0, 9, 1024, 8, 1, six, 6);
        join_some(b, one, 6);
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(one[i].state, MEMBER_IN);
        agg_fixture_destroy(b);
    }
}

/* The spine has no room: the leaf passes its reason on and holds nothing for it. */
static void
a_refusal_further_up_comes_down_by_name_and_releases_what_was_granted_below(void **state)
{
    static const unsigned others[] = {1, 5};
    struct agg_fixture *b = agg_fixture_of(
        LINKS
        "nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\", \"h4\", \"h5\"); kind = \"host\"; },\n"
        "{ name = (\"l0\", \"l1\"); role = \"leaf\"; reduce = { }; },\n"
        "{ name = \"s\"; role = \"spine\"; reduce = { groups = 1; }; } );\n"
        "links = ( { a = (\"h0\", \"h1\", \"h2\"); b = \"l0\"; },\n"
        "{ a = (\"h3\", \"h4\", \"h5\"); b = \"l1\"; }, { a = (\"l0\", \"l1\"); b = \"s\"; } );\n",
        3);
    struct member *one = agg_fixture_group(b, 0, 7, 1024, 16, 1, (unsigned[]){0, 4}, 2);
    struct member *two = agg_fixture_group(b, 0, 8, 1024, 16, 1, others, 2);

    (void)state;
    join_some(b, one, 2);
    join_some(b, two, 2);
    for (unsigned i = 0; i < 2; i++)
        expect(&two[i], MEMBER_REFUSED, AGG_E_QUOTA_GROUPS, "s: s has 1 groups");
    assert_int_equal(an_counters(an_of(b, "l0"))->groups, 1);
    assert_int_equal(an_counters(an_of(b, "l1"))->groups, 1);
    two[0].deaf = two[1].deaf = true;
    agg_fixture_destroy(b);
}

static void a_parent_that_does_not_answer_refuses_the_children_and_leaves_nothing(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 4);
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, 6);

    (void)state;
    b->an_dead[b->f->trees[0].root] = true;
    for (unsigned i = 0; i < 6; i++) {
        agg_fixture_join(&m[i]);
        m[i].retry_ps = PS_NEVER; /* once: a repeated JOIN would be a new request */
    }
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 400 * PS_PER_MS));
    expect_all(b, MEMBER_REFUSED, AGG_E_PARENT, "spine0 does not answer leaf");
    nothing_is_held(b);
    for (unsigned i = 0; i < 6; i++)
        m[i].deaf = true;
    agg_fixture_destroy(b);
}

/* Before any retry: at a dilation of 1000 sixteen of them take a minute of the wall clock. */
static void a_parent_whose_link_is_down_refuses_at_once(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 4);
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, 6);

    (void)state;
    b->unlinked[b->f->trees[0].root] = b->an_dead[b->f->trees[0].root] = true;
    join_some(b, m, 6);
    assert_true(b->now < PS_PER_MS / 10);
    expect_all(b, MEMBER_REFUSED, AGG_E_PARENT, "spine0 has no link to leaf");
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

/* The parent receives the JOIN of a leaf that gave up long ago: the leaf gives its grant back. */
static void a_grant_that_nobody_waits_for_is_given_back(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 12);
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, 6);
    uint16_t root = b->f->trees[0].root;
    struct endpoint ep = an_endpoint(b->an[root]);

    (void)state;
    b->an_dead[root] = b->keep = true;
    agg_fixture_join(m);
    m->retry_ps = PS_NEVER;
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 400 * PS_PER_MS));
    agg_fixture_settle(b, 400 * PS_PER_MS);
    m->deaf = true;
    b->an_dead[root] = false;
    assert_non_null(b->kept);
    assert_int_equal(ep.input(ep.ctx, &b->kept, 1, b->now), 1);
    assert_int_equal(an_counters(b->an[root])->groups, 1);
    agg_fixture_settle(b, 5 * PS_PER_MS);
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

static void more_than_128_children_of_one_switch_are_refused_by_name(void **state)
{
    unsigned ids[129];
    struct agg_fixture *b = agg_fixture_of(
        LINKS "reduce = { };\nmtu = 1024; slots_per_host = 16; single_switch = { hosts = 130; };\n",
        1);
    struct member *m;

    (void)state;
    for (unsigned i = 0; i < LEN(ids); i++)
        ids[i] = i;
    m = agg_fixture_group(b, 0, 7, 1024, 16, 1, ids, 1);
    for (unsigned i = 0; i < LEN(ids); i++)
        fab_members_add(&m->g.members, ids[i]);
    agg_fixture_join(m);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 10 * PS_PER_MS));
    expect(m, MEMBER_REFUSED, AGG_E_CHILDREN, "129 children at switch0, at most 128");
    m->deaf = true;
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wrong_join_is_refused_by_name),
        cmocka_unit_test(a_join_of_another_version_is_refused_by_name),
        cmocka_unit_test(a_switch_that_does_not_reduce_says_so),
        cmocka_unit_test(what_is_over_quota_is_refused_by_name_and_granted_once_there_is_room),
        cmocka_unit_test(a_window_that_does_not_fit_is_granted_smaller_by_name),
        cmocka_unit_test(groups_that_each_hold_a_half_do_not_wait_for_each_other),
        cmocka_unit_test(
            a_refusal_further_up_comes_down_by_name_and_releases_what_was_granted_below),
        cmocka_unit_test(a_parent_that_does_not_answer_refuses_the_children_and_leaves_nothing),
        cmocka_unit_test(a_parent_whose_link_is_down_refuses_at_once),
        cmocka_unit_test(a_grant_that_nobody_waits_for_is_given_back),
        cmocka_unit_test(more_than_128_children_of_one_switch_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
