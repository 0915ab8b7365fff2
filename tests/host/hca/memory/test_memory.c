/* SPDX-License-Identifier: BSD-3-Clause */
/* Which memory of a program can be registered. */
#include "tests/host/hca/memory/pages.h"

#include <fcntl.h>
#include <unistd.h>

/* Six pages: . mapped for nothing, r, w (both), x a hole, f of a file, e beyond its end. */
static char *lay_out(const char *pages)
{
    char *m = map_pages(PROT_READ | PROT_WRITE);
    int fd = memfd_create("file", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)(strcspn(pages, "e") * PAGE)), 0);
    for (unsigned i = 0; i < PAGES; i++) {
        char *at = m + i * PAGE;

        m[i * PAGE] = (char)(i + 1);
        if (pages[i] == '.')
            assert_int_equal(mprotect(at, PAGE, PROT_NONE), 0);
        if (pages[i] == 'r')
            assert_int_equal(mprotect(at, PAGE, PROT_READ), 0);
        if (pages[i] == 'x')
            assert_int_equal(munmap(at, PAGE), 0);
        if (pages[i] == 'f' || pages[i] == 'e')
            assert_ptr_equal(
                mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)i * PAGE),
                at);
    }
    close(fd);
    return m;
}

static const struct layout {
    const char *pages;
    unsigned off, len, access;
    int rc;
} layouts[] = {
    {"wwwwww", 0, PAGES *PAGE, LW, 0},
    {"rrrrrr", 0, PAGES *PAGE, 0, 0},
    {"rrrrrr", 0, PAGES *PAGE, IBV_ACCESS_REMOTE_READ, 0},
    {"rrrrrr", 0, PAGES *PAGE, LW, EFAULT},
    {"rrrrrr", 100, 8, LW | IBV_ACCESS_REMOTE_WRITE, EFAULT},
    {"rrrrrr", 100, 8, IBV_ACCESS_MW_BIND, EFAULT},
    {"wwrwww", 0, PAGES *PAGE, LW, EFAULT},
    {"wwrwww", 0, PAGES *PAGE, 0, 0},
    {"wwrwww", 0, 2 * PAGE, LW, 0},
    {"wwrwww", 0, 2 * PAGE + 1, LW, EFAULT},
    {"wwrwww", 3 * PAGE - 1, 2, LW, EFAULT},
    {"wwrwww", 3 * PAGE, 3 * PAGE, LW, 0},
    {"wwxwww", 0, PAGES *PAGE, LW, EFAULT},
    {"wwxwww", 0, PAGES *PAGE, 0, EFAULT},
    {"wwxwww", 2 * PAGE, 1, 0, EFAULT},
    {"ww.www", 0, PAGES *PAGE, 0, EFAULT},
    {"......", 0, 1, 0, EFAULT},
    {"wwffww", 0, PAGES *PAGE, LW, 0},
    {"rwffrr", 0, PAGES *PAGE, 0, 0},
    {"rwffrr", PAGE, 3 * PAGE, LW, 0},
    {"wwffee", 0, 4 * PAGE, LW, 0},
    {"wwffee", 0, 5 * PAGE, LW, EFAULT},
    {"wwffew", 0, 6 * PAGE, LW, EFAULT}, /* a page inside is beyond the end of its file */
};

/* All registering calls agree, and memory is unchanged. */
static void memory_that_is_not_there_or_not_for_writing_is_refused(void **state)
{
    struct pair p;

    (void)state;
    open_real(&p);
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        const struct layout *l = &layouts[i];
        char *m = lay_out(l->pages), *at = m + l->off;
        struct ibv_mr *mr[3], *other = ibv_reg_mr(p.s[0].pd, p.s[0].buf, 64, l->access);

        errno = 0;
        mr[0] = ibv_reg_mr(p.s[0].pd, at, l->len, (int)l->access);
        assert_int_equal(mr[0] ? 0 : errno, l->rc);
        mr[1] = ibv_reg_mr_iova(p.s[0].pd, at, l->len, l->off % PAGE, (int)l->access);
        assert_int_equal(mr[1] ? 0 : errno, l->rc);
        mr[2] = ibv_reg_mr_iova2(p.s[0].pd, at, l->len, l->off % PAGE,
                                 l->access | IBV_ACCESS_RELAXED_ORDERING);
        assert_int_equal(mr[2] ? 0 : errno, l->rc);
        assert_int_equal(ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at, l->len, 0),
                         l->rc ? IBV_REREG_MR_ERR_INPUT : 0);
        assert_ptr_equal(other->addr, l->rc ? (void *)p.s[0].buf : (void *)at);
        for (unsigned k = 0; k < PAGES; k++)
            if (l->pages[k] == 'w' || l->pages[k] == 'r')
                assert_int_equal(m[k * PAGE], k + 1);
        for (unsigned k = 0; k < 3; k++)
            if (mr[k])
                assert_int_equal(ibv_dereg_mr(mr[k]), 0);
        assert_int_equal(ibv_dereg_mr(other), 0);
        munmap(m, PAGES * PAGE);
    }
    pair_close(&p);
}

/* A change of rights checks the memory of a region again. */
static void more_rights_need_memory_for_writing(void **state)
{
    char *m = map_pages(PROT_READ);
    struct ibv_mr *mr;
    struct pair p;

    (void)state;
    open_real(&p);
    mr = ibv_reg_mr(p.s[0].pd, m, PAGE, IBV_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    assert_int_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW | IBV_ACCESS_REMOTE_WRITE),
        IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(mprotect(m, PAGE, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW | IBV_ACCESS_REMOTE_WRITE),
        0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    munmap(m, PAGES * PAGE);
    pair_close(&p);
}

static void a_dma_buf_for_reading_is_not_written(void **state)
{
    int fd = memfd_create("dmabuf", MFD_CLOEXEC), ro;
    struct ibv_mr *mr;
    struct pair p;
    char name[40];

    (void)state;
    open_real(&p);
    assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    ro = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(ro >= 0);
    mr = ibv_reg_dmabuf_mr(p.s[0].pd, 0, 2 * PAGE, 0, ro, IBV_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW),
                     IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_null(ibv_reg_dmabuf_mr(p.s[0].pd, 0, 2 * PAGE, 0, ro, LW));
    assert_null(ibv_reg_dmabuf_mr(p.s[0].pd, PAGE, PAGE + 1, 0, fd, LW));
    assert_int_equal(errno, EINVAL); /* beyond its end */
    assert_null(ibv_reg_dmabuf_mr(p.s[0].pd, UINT64_MAX - 1, PAGE, 0, fd, LW));
    assert_int_equal(errno, EINVAL);
    close(fd);
    close(ro);
    pair_close(&p);
}

static void a_gigabyte_is_not_touched(void **state)
{
    const size_t bytes = 1ul << 30;
    char *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    unsigned char *vec = malloc(bytes / PAGE);
    struct ibv_mr *mr;
    unsigned there = 0;
    struct pair p;

    (void)state;
    open_real(&p);
    madvise(m, bytes, MADV_NOHUGEPAGE);
    mr = ibv_reg_mr(p.s[0].pd, m, bytes, LW);
    assert_non_null(mr);
    assert_int_equal(mincore(m, bytes, vec), 0);
    for (size_t i = 0; i < bytes / PAGE; i++)
        there += vec[i] & 1;
    assert_in_range(there, 0, 4);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    free(vec);
    munmap(m, bytes);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_is_not_there_or_not_for_writing_is_refused),
        cmocka_unit_test(more_rights_need_memory_for_writing),
        cmocka_unit_test(a_dma_buf_for_reading_is_not_written),
        cmocka_unit_test(a_gigabyte_is_not_touched),
    };

    return cmocka_run_group_tests_name("hca/memory", tests, NULL, NULL);
}
