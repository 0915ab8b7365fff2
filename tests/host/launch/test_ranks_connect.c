/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks are sent until they are connected, and what becomes of their answers. */
#include "collective/file/sched_file.h"
#include "tests/host/launch/far_row.h"

#include <errno.h>
#include <sys/stat.h>

/* A rank that connects: what it was sent, in order. */
struct connecting {
    pthread_t thread;
    int fd;
    unsigned rank;
    bool odd; /* it says HELLO without a blob */
    char log[512];
    struct msg_init init;
    uint16_t host[N];
    uint8_t blobs[N * COMM_BLOB];
    char conf[64], schedule[8192];
};

static void hear(struct connecting *c, const struct msg *m)
{
    size_t at = strlen(c->log);
    struct msg_done d = {.granted = {.asked = 7 + c->rank, .trees = 1}};
    uint8_t blob[COMM_BLOB];

    snprintf(c->log + at, sizeof(c->log) - at, "%u %s", m->type,
             m->type == MSG_SCHEDULE || m->type == MSG_FABRIC ? "text " : "");
    if (m->type == MSG_INIT) {
        assert_int_equal(m->len, sizeof(c->init) + sizeof(c->host));
        memcpy(&c->init, m->body, sizeof(c->init));
        memcpy(c->host, m->body + sizeof(c->init), sizeof(c->host));
        memset(blob, 'a' + (int)c->rank, sizeof(blob));
        msg_send(c->fd, MSG_HELLO, blob, c->odd ? 1 : sizeof(blob));
    } else if (m->type == MSG_FABRIC) {
        snprintf(c->conf, sizeof(c->conf), "%.*s", (int)m->len, (const char *)m->body);
    } else if (m->type == MSG_SCHEDULE) {
        strncat(c->schedule, (const char *)m->body, m->len);
    } else if (m->type == MSG_CONNECT) {
        assert_int_equal(m->len, sizeof(c->blobs));
        memcpy(c->blobs, m->body, sizeof(c->blobs));
        d.granted.asked = 0;
        snprintf(d.memory, sizeof(d.memory), "memory %u", c->rank);
        msg_send(c->fd, MSG_DONE, &d, sizeof(d));
    } else if (m->type == MSG_GRANTED) {
        msg_send(c->fd, MSG_DONE, &d, sizeof(d));
    }
}

static void *connect_rank(void *ctx)
{
    struct connecting *c = ctx;
    struct inbox in = {0};
    bool over = false;
    struct msg m;

    while (!over) {
        struct pollfd w = {.fd = c->fd, .events = POLLIN};

        over = poll(&w, 1, 20000) != 1 || msg_fill(&in, c->fd) < 0;
        while (!over && msg_next(&in, &m) > 0) {
            hear(c, &m);
            over = m.type == MSG_GRANTED || m.type == MSG_ABORT;
        }
    }
    msg_free(&in);
    return NULL;
}

static struct connecting rank[N];

static int connect_all(struct fixture *b)
{
    int rc;

    for (unsigned r = 0; r < N; r++) {
        rank[r].fd = b->fd[r];
        rank[r].rank = r;
        assert_int_equal(pthread_create(&rank[r].thread, NULL, connect_rank, &rank[r]), 0);
    }
    rc = ranks_connect(&b->s);
    for (unsigned r = 0; r < N; r++)
        pthread_join(rank[r].thread, NULL);
    return rc;
}

static char dir[32];

static struct fixture *begin(void)
{
    struct fixture *b = set_up(1e-6);
    char path[64];
    FILE *f;

    memset(rank, 0, sizeof(rank));
    strcpy(dir, "/tmp/test_connect.XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/fabric.conf", dir);
    f = fopen(path, "w");
    fputs("the conf's text", f);
    fclose(f);
    chmod(path, 0600);
    snprintf(b->rd.path, sizeof(b->rd.path), "%s", dir);
    b->s.set_up = 5;
    b->s.tree[0] = 3;
    b->o.window = 9;
    b->o.n_policy = 2;
    b->o.policy[0] = ALGO_SHARP, b->o.policy[1] = ALGO_RING;
    b->o.gpu = BUFFER_HOST;
    b->o.max_bytes = 4095;
    return b;
}

static void end(struct fixture *b)
{
    char rm[64];

    snprintf(rm, sizeof(rm), "rm -rf %s", dir);
    assert_int_equal(system(rm), 0);
    tear_down(b);
}

static void ranks_are_told_of_their_group_and_of_each_other(void **state)
{
    struct fixture *b = begin();
    uint8_t blobs[N * COMM_BLOB];
    char log[64];

    (void)state;
    assert_int_equal(connect_all(b), 0);
    snprintf(log, sizeof(log), "%d %d %d ", MSG_INIT, MSG_CONNECT, MSG_GRANTED);
    for (unsigned r = 0; r < N; r++)
        memset(blobs + r * COMM_BLOB, 'a' + (int)r, COMM_BLOB);
    for (unsigned r = 0; r < N; r++) {
        const struct msg_init *in = &rank[r].init;

        assert_string_equal(rank[r].log, log);
        assert_int_equal(in->rank, r);
        assert_int_equal(in->nranks, N);
        assert_int_equal(in->window, 9);
        assert_int_equal(in->algos, 5);
        assert_int_equal(in->n_trees, 1);
        assert_int_equal(in->tree[0], 3);
        assert_int_equal(in->n_policy, 2);
        assert_int_equal(in->policy[0], ALGO_SHARP);
        assert_int_equal(in->policy[1], ALGO_RING);
        assert_int_equal(in->schedule, 0);
        assert_int_equal(in->timeline, 0);
        assert_int_equal(in->gpu, BUFFER_HOST);
        assert_int_equal(in->buf_bytes, 4096);
        assert_int_equal(in->group, rank[0].init.group);
        assert_true(in->key == rank[0].init.key && in->key != 0);
        assert_memory_equal(rank[r].host, b->s.host_of_rank, sizeof(rank[r].host));
        assert_memory_equal(rank[r].blobs, blobs, sizeof(blobs));
    }
    assert_string_equal(b->s.memory, "memory 0");
    assert_int_equal(b->s.granted.asked, 7); /* rank 0's */
    end(b);
}

static void groups_have_secrets_of_their_own(void **state)
{
    uint64_t key[2];
    uint32_t group[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct fixture *b = begin();

        assert_int_equal(connect_all(b), 0);
        key[i] = rank[0].init.key;
        group[i] = rank[0].init.group;
        end(b);
    }
    assert_true(key[0] != key[1]);
    assert_true(group[0] != group[1]);
}

/* Ranks elsewhere have no run directory. */
static void ranks_elsewhere_get_the_conf(void **state)
{
    struct fixture *b = begin();
    struct fab_node *host;

    (void)state;
    host = &b->s.fab->nodes[b->s.fab->hosts[1]];
    host->outside = true;
    assert_int_equal(connect_all(b), 0);
    for (unsigned r = 0; r < N; r++)
        assert_string_equal(rank[r].conf, r == 1 ? "the conf's text" : "");
    end(b);
    b = begin();
    unlink(strcat(strcpy(b->rd.path, dir), "/fabric.conf"));
    snprintf(b->rd.path, sizeof(b->rd.path), "%s", dir);
    for (unsigned r = 0; r < N; r++)
        shutdown(b->fd[r], SHUT_WR); /* they do not wait for what does not come */
    assert_int_equal(ranks_connect(&b->s), -ENOENT);
    end(b);
}

static void a_schedule_is_sent_whole(void **state)
{
    struct fixture *b = begin();
    struct fab_errors *errs = calloc(1, sizeof(*errs));

    (void)state;
    b->o.file = sched_file_load("conf/schedules/ring-8.sched", errs);
    assert_non_null(b->o.file);
    assert_int_equal(connect_all(b), 0);
    for (unsigned r = 0; r < N; r++) {
        assert_string_equal(rank[r].schedule, b->o.file->text);
        assert_int_equal(rank[r].init.schedule, strlen(b->o.file->text));
    }
    sched_file_free(b->o.file);
    free(errs);
    end(b);
}

static void an_answer_without_a_blob_is_unusable(void **state)
{
    struct fixture *b = begin();

    (void)state;
    rank[1].odd = true;
    assert_int_equal(connect_all(b), -ECANCELED);
    assert_non_null(strstr(job_cause(&b->j), "rank 1 (h1, pid 1): unusable answer"));
    end(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_told_of_their_group_and_of_each_other),
        cmocka_unit_test(groups_have_secrets_of_their_own),
        cmocka_unit_test(ranks_elsewhere_get_the_conf),
        cmocka_unit_test(a_schedule_is_sent_whole),
        cmocka_unit_test(an_answer_without_a_blob_is_unusable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
