/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of objects that ibv_query_device and ibv_query_port report are exact: so many can be
 * created, and one more is refused with ENOMEM. Sizes are in test_sizes.c.
 */
#include "tests/host/hca/pair.h"

/* ---- how many ---- */

static void *make_one_qp(struct side *s)
{
    struct ibv_qp_init_attr a = {
        .send_cq = s->cq, .recv_cq = s->cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

    return ibv_create_qp(s->pd, &a);
}

static void *make_one_cq(struct side *s)
{
    return ibv_create_cq(s->ctx, 1, NULL, NULL, 0);
}

static void *make_one_mr(struct side *s)
{
    return ibv_reg_mr(s->pd, s->buf, 64, 0);
}

static void *make_one_mw(struct side *s)
{
    return ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
}

static void *make_one_pd(struct side *s)
{
    return ibv_alloc_pd(s->ctx);
}

static void *make_one_ah(struct side *s)
{
    struct ibv_ah_attr a = ah_to(IP_B);

    return ibv_create_ah(s->pd, &a);
}

static void *make_one_srq(struct side *s)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 1, .max_sge = 1}};

    return ibv_create_srq(s->pd, &a);
}

#define DROP(fn, type)                                                                             \
    static int drop_##type(void *o)                                                                \
    {                                                                                              \
        return fn((struct ibv_##type *)o);                                                         \
    }
DROP(ibv_destroy_qp, qp)
DROP(ibv_destroy_cq, cq)
DROP(ibv_dereg_mr, mr)
DROP(ibv_dealloc_mw, mw)
DROP(ibv_dealloc_pd, pd)
DROP(ibv_destroy_ah, ah)
DROP(ibv_destroy_srq, srq)

struct how_many {
    const char *name;
    size_t field;
    unsigned there; /* that the side already has */
    void *(*make)(struct side *s);
    int (*drop)(void *object);
};
#define COUNT(x, there)                                                                            \
    {                                                                                              \
        "max_" #x, offsetof(struct ibv_device_attr, max_##x), there, make_one_##x, drop_##x        \
    }
static const struct how_many how_many[] = {
    COUNT(qp, 0), COUNT(cq, 1), COUNT(mr, 1),  COUNT(mw, 0),
    COUNT(pd, 1), COUNT(ah, 0), COUNT(srq, 0),
};

static void as_many_objects_as_reported_and_not_one_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(how_many) / sizeof(how_many[0]); i++) {
        const struct how_many *row = &how_many[i];
        struct ibv_device_attr d;
        unsigned max, n;
        void **object;
        struct pair p;

        pair_open(&p);
        assert_int_equal(ibv_query_device(p.s[0].ctx, &d), 0);
        max = *(unsigned *)((char *)&d + row->field);
        print_message("%s = %u\n", row->name, max);
        assert_true(max >= 1024);
        object = calloc(max, sizeof(*object));
        for (n = row->there; n < max; n++) {
            object[n] = row->make(&p.s[0]);
            assert_non_null(object[n]);
        }
        errno = 0;
        assert_null(row->make(&p.s[0]));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(row->drop(object[max - 1]), 0); /* one place is free again */
        object[max - 1] = row->make(&p.s[0]);
        assert_non_null(object[max - 1]);
        for (n = row->there; n < max; n++)
            assert_int_equal(row->drop(object[n]), 0);
        free(object);
        pair_close(&p);
    }
}

/* ---- multicast, tables ---- */

static void as_many_multicast_attachments_as_reported(void **state)
{
    struct ibv_qp *qp[65];
    struct ibv_device_attr d;
    struct pair p;
    union ibv_gid gid;
    int n;

    (void)state;
    pair_open(&p);
    assert_int_equal(ibv_query_device(p.s[0].ctx, &d), 0);
    assert_int_equal(d.max_mcast_grp, 64);
    assert_int_equal(d.max_mcast_qp_attach, 64);
    assert_int_equal(d.max_total_mcast_qp_attach, 64);
    for (n = 0; n < 65; n++)
        qp[n] = make_qp(&p.s[0], IBV_QPT_UD);
    for (n = 0; n < 65; n++) { /* one queue pair in many groups */
        gid = gid_of(0xe8000100u + (unsigned)n);
        assert_int_equal(ibv_attach_mcast(qp[0], &gid, 0), n < d.max_mcast_grp ? 0 : ENOMEM);
    }
    for (n = 0; n < 64; n++) {
        gid = gid_of(0xe8000100u + (unsigned)n);
        assert_int_equal(ibv_detach_mcast(qp[0], &gid, 0), 0);
    }
    gid = gid_of(0xe8000001u);
    for (n = 0; n < 65; n++) /* many in one */
        assert_int_equal(ibv_attach_mcast(qp[n], &gid, 0), n < d.max_mcast_qp_attach ? 0 : ENOMEM);
    for (n = 0; n < 65; n++) {
        if (n < 64)
            assert_int_equal(ibv_detach_mcast(qp[n], &gid, 0), 0);
        assert_int_equal(ibv_destroy_qp(qp[n]), 0);
    }
    pair_settle(&p);
    pair_close(&p);
}

static void tables_are_as_long_as_reported(void **state)
{
    struct ibv_device_attr d;
    struct ibv_port_attr port;
    struct ibv_gid_entry ge;
    union ibv_gid gid;
    struct pair p;
    __be16 pkey;

    (void)state;
    pair_open(&p);
    assert_int_equal(ibv_query_device(p.s[0].ctx, &d), 0);
    assert_int_equal(d.max_res_rd_atom, d.max_qp * d.max_qp_rd_atom);
    assert_int_equal(ibv_query_port(p.s[0].ctx, d.phys_port_cnt, &port), 0);
    assert_int_equal(ibv_query_port(p.s[0].ctx, (uint8_t)(d.phys_port_cnt + 1), &port), EINVAL);
    assert_int_equal(port.pkey_tbl_len, d.max_pkeys);
    for (int i = 0; i <= port.gid_tbl_len; i++) {
        assert_int_equal(ibv_query_gid(p.s[0].ctx, 1, i, &gid), i < port.gid_tbl_len ? 0 : -1);
        assert_int_equal(ibv_query_gid_ex(p.s[0].ctx, 1, (uint32_t)i, &ge, 0),
                         i < port.gid_tbl_len ? 0 : ENODATA);
    }
    for (int i = 0; i <= port.pkey_tbl_len; i++)
        assert_int_equal(ibv_query_pkey(p.s[0].ctx, 1, i, &pkey), i < port.pkey_tbl_len ? 0 : -1);
    assert_null(ibv_create_cq(p.s[0].ctx, 1, NULL, NULL, p.s[0].ctx->num_comp_vectors));
    assert_int_equal(errno, EINVAL);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_objects_as_reported_and_not_one_more),
        cmocka_unit_test(as_many_multicast_attachments_as_reported),
        cmocka_unit_test(tables_are_as_long_as_reported),
    };

    return cmocka_run_group_tests_name("hca/limits", tests, NULL, NULL);
}
