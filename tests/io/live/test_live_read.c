/* SPDX-License-Identifier: BSD-3-Clause */
/* What processes answer becomes a look: tables in several parts, links, groups, slots, lateness, sums;
 * and an answer that cannot be right makes a process silent. */
#include "tests/io/live/looked.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

struct answer {
    const char *question, *json; /* json NULL: it closes the connection */
};

/* A process: a thread that answers until the other end closes. */
struct process {
    pthread_t thread;
    int fd;
    const struct answer *answers; /* ends with an empty question */
    char asked[2048];             /* all questions, a line each */
};

static void *serve(void *arg)
{
    struct process *p = arg;
    char question[256], text[4096];
    ssize_t n;

    while ((n = recv(p->fd, question, sizeof(question) - 1, 0)) > 0) {
        const struct answer *a = p->answers;

        question[n] = 0;
        snprintf(p->asked + strlen(p->asked), sizeof(p->asked) - strlen(p->asked), "%s\n",
                 question);
        while (a->question && strcmp(a->question, question) != 0)
            a++;
        if (a->question && !a->json)
            break;
        snprintf(text, sizeof(text), "{\"x\":%s}", a->question ? a->json : "null");
        send(p->fd, text, strlen(text), MSG_NOSIGNAL);
    }
    close(p->fd);
    return NULL;
}

static void start(struct process *p, const struct answer *answers, struct live_proc *of,
                  const char *name)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    *p = (struct process){.fd = fds[1], .answers = answers};
    *of = (struct live_proc){.pid = 1, .fd = fds[0], .state = LIVE_READY};
    snprintf(of->name, sizeof(of->name), "%s", name);
    assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
}

static void end(struct process *p, struct live_proc *of)
{
    live_close(of);
    pthread_join(p->thread, NULL);
}

static struct live_fabric *fabric_up(void)
{
    struct live_fabric *x = calloc(1, sizeof(*x));

    x->f = load_text(looked_conf);
    x->faults = calloc(x->f->n_links + 1u, sizeof(*x->faults));
    snprintf(x->rd.path, sizeof(x->rd.path), "/nonexistent");
    return x;
}

static void fabric_down(struct live_fabric *x)
{
    live_groups_free(&x->before);
    free(x->before.slot);
    looked_free(x);
}

#define BIT(column) (1ull << (column))

/* [now, next, columns, rows] of ports: direction and three more columns. */
static void ports(char *out, size_t size, unsigned next, uint64_t columns, const char *rows)
{
    snprintf(out, size, "[%lld,%u,%llu,%s]", 7 * S, next, (unsigned long long)columns, rows);
}

static void check_ports(const struct live_fabric *x)
{
    assert_int_equal(x->proc[0].state, LIVE_READY);
    assert_int_equal(x->dilation, 30);
    assert_int_equal(x->now.now_ps, 7 * S);
    assert_true(x->now.dir[0].known && x->now.dir[1].known && x->now.dir[3].known);
    assert_false(x->now.dir[2].known || x->now.dir[4].known || x->now.dir[5].known);
    assert_int_equal(x->now.dir[1].now_ps, 7 * S);
    assert_int_equal(live_count(x, 0, PORT_frames), 10);
    assert_int_equal(live_count(x, 1, PORT_frames), 20);
    assert_int_equal(live_count(x, 1, PORT_queue_full), 2);
    assert_int_equal(live_count(x, 3, PORT_drops), 0);
    assert_int_equal(live_count(x, 2, PORT_drops), 7); /* of what the other end has sent */
    assert_int_equal(live_count(x, 2, PORT_drops + DROP_RING_FULL), 8);
    assert_true(x->now.dir[6].known); /* nobody else knows what the outside sends */
    assert_int_equal(x->now.dir[6].now_ps, 7 * S);
    assert_int_equal(live_count(x, 6, PORT_frames), 100);
    assert_int_equal(live_count(x, 6, PORT_bytes), 5000);
    assert_int_equal(live_count(x, 6, PORT_link_bytes), 5000 + 24 * 100);
    assert_int_equal(live_count(x, 6, PORT_down), 1);
    assert_int_equal(live_count(x, 7, PORT_bytes), 6);
}

static void check_others(const struct live_fabric *x)
{
    assert_int_equal(x->now.lag[0], 3);
    assert_int_equal(x->lag_top[0], 100);
    assert_int_equal(x->now.lag[511], 4);
    assert_string_equal(x->faults[0], "");
    assert_string_equal(x->faults[1], "");
    assert_string_equal(x->faults[2], "loss=1%");
    assert_string_equal(x->faults[3], "loss=0.1%");
    assert_string_equal(live_kind(x, 0), "reduce");
    assert_string_equal(live_kind(x, 1), "");
    assert_string_equal(live_kind(x, 2), "multimem");
    assert_int_equal(x->n_kinds, 3);
}

static void a_table_comes_in_parts(void **state)
{
    static char first[128], second[128], outside[128];
    static const struct answer answers[] = {
        {"/trib/dilation", "{\"dilation\":30}"},
        {"/trib/table/ports,0", first},
        {"/trib/table/ports,2", second},
        {"/trib/table/ports,3", outside},
        {"/trib/table/groups,0", "[0,0,1]"},
        {"/trib/table/slots,0", "[0,0,1]"},
        {"/trib/table/lag,0", "[0,0,7, 0,100,3, 511,200,4, 512,300,5]"},
        {"/trib/link",
         "[\"h0-s: down\",\"h1:1-s:2: down loss=1%\",\"s-g: loss=0.1%\",\"h9-s: down\",\"x\",7]"},
        {"/trib/table/kinds", "[\"reduce\",5,\"multimem\"]"},
        {NULL, NULL},
    };
    struct live_fabric *x = fabric_up();
    struct process p;

    (void)state;
    ports(first, sizeof(first), 2, BIT(PORT_direction) | BIT(PORT_frames) | BIT(PORT_queue_full),
          "0,10,1, 1,20,2");
    ports(second, sizeof(second), 3,
          BIT(PORT_direction) | BIT(PORT_drops) | BIT(PORT_drops + DROP_RING_FULL), "3,7,8");
    ports(outside, sizeof(outside), 0,
          BIT(PORT_direction) | BIT(PORT_down) | BIT(PORT_rx_frames) | BIT(PORT_rx_bytes) |
              BIT(PORT_bytes),
          "7,1,100,5000,6, 8,1,1,1,1");
    start(&p, answers, &x->proc[0], "p0");
    x->n_procs = 1;
    live_read(x, 0);
    check_ports(x);
    check_others(x);
    live_read(x, 0); /* kinds stay; what was now is before */
    assert_int_equal(x->before.now_ps, 7 * S);
    assert_int_equal(x->before.dir[1].v[PORT_frames], 20);
    assert_int_equal(x->now.lag[511], 4);
    end(&p, &x->proc[0]);
    assert_null(strstr(strstr(p.asked, "kinds") + 1, "kinds"));
    assert_null(strstr(p.asked, "totals"));
    fabric_down(x);
}

static void groups_and_slots_of_known_nodes_are_taken(void **state)
{
    static char groups[512], slots[512];
    static const struct answer answers[] = {
        {"/trib/dilation", "{\"dilation\":1}"},
        {"/trib/table/ports,0", "[5,0,1]"},
        {"/trib/table/groups,0", groups},
        {"/trib/table/slots,0", slots},
        {"/trib/table/lag,0", "[0,0,1]"},
        {"/trib/link", "[]"},
        {NULL, NULL},
    };
    struct live_fabric *x = fabric_up();
    struct process p;
    char comm[17];
    FILE *f = fopen("/proc/self/comm", "re");

    (void)state;
    assert_non_null(fgets(comm, sizeof(comm), f));
    comm[strcspn(comm, "\n")] = 0;
    fclose(f);
    /* node, id, founder, child: nodes 0 to 3, founders and children one more */
    snprintf(groups, sizeof(groups), "[5,0,%llu, 3,1,4,4, 4,2,0,0, 3,3,5,0, 3,4,0,5, 0,5,1,1]",
             BIT(GROUP_node) | BIT(GROUP_id) | BIT(GROUP_founder) | BIT(GROUP_child));
    snprintf(slots, sizeof(slots), "[5,0,%llu, 1,2,%d,9, 4,1,1,1, 3,0,0,8]",
             BIT(SLOT_node) | BIT(SLOT_slot) | BIT(SLOT_pid) | BIT(SLOT_stalled), (int)getpid());
    start(&p, answers, &x->proc[0], "p0");
    x->n_procs = 1;
    live_read(x, 0);
    assert_int_equal(x->now.n_groups, 2);
    assert_int_equal(x->now.group[0].id, 1);
    assert_int_equal(x->now.group[0].owner, 3);
    assert_int_equal(x->now.group[1].id, 5);
    assert_int_equal(x->now.n_slots, 2);
    assert_int_equal(x->now.slot[0].v[SLOT_slot], 2);
    assert_int_equal(x->now.slot[0].v[SLOT_stalled], 9);
    assert_string_equal(x->now.slot[0].program, comm);
    assert_int_equal(x->now.slot[1].v[SLOT_node], 3);
    assert_string_equal(x->now.slot[1].program, "");
    end(&p, &x->proc[0]);
    fabric_down(x);
}

static void sums_are_of_all_processes_and_peaks_the_greatest(void **state)
{
    static const struct answer first[] = {
        {"/trib/dilation", "{\"dilation\":1}"},
        {"/trib/table/ports,0", "[900,0,1]"},
        {"/trib/table/groups,0", "[0,0,1]"},
        {"/trib/table/slots,0", "[0,0,1]"},
        {"/trib/table/lag,0", "[0,0,7, 5,100,3]"},
        {"/trib/link", "[]"},
        {"/trib/totals", "{\"frames\":1,\"peak_queue\":9,\"peak_less\":1,\"text\":\"x\"}"},
        {"/trib/an", "[\"s\"]"},
        {"/trib/an,s", "{\"groups\":2}"},
        {NULL, NULL},
    };
    static const struct answer second[] = {
        {"/trib/dilation", "{\"dilation\":1}"},
        {"/trib/table/ports,0", "[800,0,1]"}, /* the earliest */
        {"/trib/table/groups,0", "[0,0,1]"},
        {"/trib/table/slots,0", "[0,0,1]"},
        {"/trib/table/lag,0", "[0,0,7, 5,100,4]"},
        {"/trib/link", "[]"},
        {"/trib/totals", "{\"frames\":20,\"peak_queue\":8,\"peak_less\":3}"},
        {"/trib/an", "[]"},
        {NULL, NULL},
    };
    struct live_fabric *x = fabric_up();
    struct process p[2];
    char *text;

    (void)state;
    start(&p[0], first, &x->proc[0], "p0");
    start(&p[1], second, &x->proc[1], "p1");
    x->n_procs = 2;
    live_read(x, LIVE_TOTALS);
    assert_int_equal(x->now.now_ps, 800);
    assert_int_equal(x->now.lag[5], 7);
    text = json_dumps(x->totals, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"frames\":21,\"peak_less\":3,\"peak_queue\":9}");
    free(text);
    text = json_dumps(x->aggregation, JSON_COMPACT);
    assert_string_equal(text, "{\"s\":{\"groups\":2}}");
    free(text);
    end(&p[0], &x->proc[0]);
    end(&p[1], &x->proc[1]);
    fabric_down(x);
}

/* An answer that is not right, or none, at each question: the process is silent, and left alone for
 * four looks. */
static void what_cannot_be_right_makes_a_process_silent(void **state)
{
    static const struct answer wrong[] = {
        {"/trib/table/ports,0", "[5,0]"},
        {"/trib/table/ports,0", "[5,0,2,1]"},
        {"/trib/table/ports,0", "[5,0,3,1]"},
        {"/trib/table/ports,0", "[5,0,3,1,2,3]"},
        {"/trib/table/ports,0", "[5,-1,1]"},
        {"/trib/table/ports,0", NULL},
        {"/trib/table/groups,0", NULL},
        {"/trib/table/slots,0", "[]"},
        {"/trib/table/lag,0", "[5,0,0]"},
        {"/trib/link", NULL},
        {"/trib/totals", NULL},
        {"/trib/dilation", NULL},
        {"/trib/table/ports,0", "[5,7,1]"}, /* and part 7 says that part 7 is next */
    };

    (void)state;
    for (unsigned i = 0; i < LEN(wrong); i++) {
        const struct answer answers[] = {
            wrong[i],
            {"/trib/dilation", "{\"dilation\":1}"},
            {"/trib/table/ports,0", "[5,0,1]"},
            {"/trib/table/ports,7", "[5,7,1]"},
            {"/trib/table/groups,0", "[0,0,1]"},
            {"/trib/table/slots,0", "[0,0,1]"},
            {"/trib/table/lag,0", "[0,0,1]"},
            {"/trib/link", "[]"},
            {"/trib/totals", "{}"},
            {NULL, NULL},
        };
        struct live_fabric *x = fabric_up();
        struct process p;

        start(&p, answers, &x->proc[0], "p0");
        x->n_procs = 1;
        live_read(x, LIVE_TOTALS);
        if (x->proc[0].state != LIVE_SILENT || x->proc[0].fd >= 0)
            fail_msg("row %u: it is %s", i, live_proc_state(&x->proc[0]));
        assert_int_equal(x->proc[0].patience, 5);
        end(&p, &x->proc[0]);
        for (unsigned look = 4; look > 0; look--) {
            live_read(x, 0);
            assert_int_equal(x->proc[0].patience, look);
        }
        live_read(x, 0); /* asked again; it is not there */
        assert_int_equal(x->proc[0].patience, 5);
        x->proc[0].state = LIVE_STARTING; /* nobody asks one that starts */
        live_read(x, 0);
        assert_int_equal(x->proc[0].patience, 5);
        fabric_down(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_comes_in_parts),
        cmocka_unit_test(groups_and_slots_of_known_nodes_are_taken),
        cmocka_unit_test(sums_are_of_all_processes_and_peaks_the_greatest),
        cmocka_unit_test(what_cannot_be_right_makes_a_process_silent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
