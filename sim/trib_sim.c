/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-sim: trib-perf in virtual time. The same options, rows, tables and checks; the fabric, its
 * ranks and their clock are in this process, and nothing that is measured depends on the machine.
 */
#include "system/atomic_output.h"
#include "sim/world/stopwatch.h"
#include "system/provenance.h"
#include "base/shortage/enough.h"
#include "host/bench/perf_protocols.h"
#include "host/bench/report.h"
#include "host/bench/result_table.h"
#include "host/bench/schedule_option.h"
#include "protocols/host/call.h"
#include "protocols/host/load.h"
#include "sim/chaos/campaign.h"
#include "sim/observe.h"
#include "sim/step/step.h"
#include "sim/world/memory.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EXIT_OK = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

static volatile int stopped; /* the signal that asks it to end */
#define PATIENCE_S 30

/* The simulation ends at its next event. It may not come to one, in a protocol that does not return:
 * the second signal ends the process, and so does a while after the first. */
static void on_signal(int sig)
{
    int last = sig == SIGALRM ? stopped : sig;

    if (stopped) {
        signal(last, SIG_DFL);
        raise(last);
        return;
    }
    stopped = sig;
    alarm(PATIENCE_S);
}

static void catch_signals(void)
{
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGALRM, on_signal);
}

/* ---- the run ---- */

static int sim_place(struct sweep *s, struct row *r, int where)
{
    struct sim *m = s->ctx;
    struct coll_prediction p;
    enum coll_algo now;
    int rc;

    if (sweep_left_out(s, r, where))
        return 0;
    now = bench_runs_by(m->b, r);
    rc = now == r->algo ? 0 : sweep_instead(s, r, now, &p);
    if (!rc)
        rc = bench_place(m->b, r, where, s->cause);

    s->wrong += r->run[where].wrong;
    return rc;
}

static void add_congestion(const struct sim *m, json_t *j)
{
    struct congestion c;

    if (!j)
        return;
    bench_congestion(m->b, &c);
    json_object_set_new(j, "congestion", congestion_json(&c));
    if (bench_background_flow(m->b))
        json_object_set_new(j, "beside", background_flow_json(bench_background_flow(m->b)));
}

static void say_congestion(const struct sim *m)
{
    struct congestion c;

    bench_congestion(m->b, &c);
    if (bench_background_flow(m->b))
        background_flow_print(bench_background_flow(m->b), stdout);
    congestion_print(&c, m->o.wide, stdout);
}

static int write_report(struct sim *m, const char *error)
{
    struct sweep *s = m->s;
    struct bench_state st;
    json_t *j;
    char trace[24];

    if (!m->o.json)
        return 0;
    bench_state(m->b, &st);
    snprintf(trace, sizeof(trace), "%016llx", (unsigned long long)st.trace);
    j = json_pack("{s:I, s:s, s:f, s:I, s:I, s:s}", "seed", (json_int_t)m->own.seed, "payload",
                  m->own.payload == PAYLOAD_NONE ? "none" : "data", "time_us",
                  (double)st.fabric_ps * 1e-6, "events", (json_int_t)st.events, "frames",
                  (json_int_t)st.frames, "trace", trace);
    add_congestion(m, j);
    if (m->counters && j)
        json_object_set_new(j, "links", counters_total(m->counters, bench_net(m->b)));
    return report_write_more(m->o.json, &m->o, s->nranks, s->rows, s->n_rows, error, &s->granted,
                             "virtual", j);
}

static void row_done(struct sweep *s)
{
    struct sim *m = s->ctx;

    for (int place = 0; m->counters && s->n_rows && place < PLACES; place++)
        row_counters_print(&s->rows[s->n_rows - 1].run[place].counted, m->o.wide, stdout);
    if (m->o.json && atomic_output_is_file(m->o.json))
        write_report(m, "not finished");
}

/* Written to stderr, because it depends on the machine: results are the same everywhere. */
static void say_cost(const struct sim *m)
{
    double s = wall_s() - m->begun_s;
    struct bench_state st;
    struct rusage ru;

    bench_state(m->b, &st);
    getrusage(RUSAGE_SELF, &ru);
    fprintf(stderr,
            "trib-sim: %.3f ms simulated in %.1f s: %llu events (%.2f M/s), %llu frames on links, "
            "%u of %u frame buffers, %ld MiB (about %llu expected); timed operations: %.3f s of "
            "CPU time, %.3f M frames/s, "
            "in %.3f s by %u thread%s\n",
            (double)st.fabric_ps * 1e-9, s, (unsigned long long)st.events,
            (double)st.events / s * 1e-6, (unsigned long long)st.frames, st.pool_peak, m->frames,
            ru.ru_maxrss / 1024, (unsigned long long)(sim_need_bytes(&m->need) >> 20),
            st.timed.cpu_s,
            st.timed.cpu_s > 0 ? (double)st.timed.frames / st.timed.cpu_s * 1e-6 : 0.0,
            st.timed.wall_s, st.threads, st.threads == 1 ? "" : "s");
}

/* Runs the rows, then all ranks leave, so that traces and counters include the whole path of every
 * frame. */
static int run_rows(struct sim *m)
{
    struct sweep *s = m->s;
    int rc = sweep_run(s);

    if (rc && !*s->cause)
        snprintf(s->cause, sizeof(s->cause), "%s", strerror(-rc));
    if (*s->cause)
        fprintf(stderr, "trib-sim: %s\n", s->cause);
    if (!stopped && bench_leave(m->b) && !rc) {
        snprintf(s->cause, sizeof(s->cause), "not every rank could leave");
        fprintf(stderr, "trib-sim: %s\n", s->cause);
        rc = -ETIME;
    }
    int wrote = write_report(m, s->cause);
    int csv = m->o.csv ? report_csv(m->o.csv, s->rows, s->n_rows) : 0;
    if (wrote)
        fprintf(stderr, "trib-sim: cannot write %s: %s\n", m->o.json, strerror(-wrote));
    if (csv)
        fprintf(stderr, "trib-sim: cannot write %s: %s\n", m->o.csv, strerror(-csv));
    return rc ? rc : wrote ? wrote : csv;
}

static int sim_run_sweep(struct sim *m, struct rte_mempool *pool)
{
    struct sweep *s = m->s;
    struct bench_cfg cfg = {.fab = s->fab,
                            .o = &m->o,
                            .nranks = s->nranks,
                            .host_of_rank = s->host_of_rank,
                            .algos = s->set_up,
                            .n_trees = s->n_trees,
                            .tree = s->tree,
                            .seed = m->own.seed,
                            .plan = m->own.faults ? &m->plan : NULL,
                            .lengths = m->own.payload == PAYLOAD_NONE,
                            .pool = pool,
                            .frames = m->frames,
                            .threads = m->threads,
                            .tap = observe_tap(m),
                            .tap_ctx = m,
                            .counters = m->counters,
                            .line = m->line,
                            .line_row = m->o.timeline_row,
                            .background = m->own.background_flow ? &m->background : NULL,
                            .stop = &stopped,
                            .terminal = s->terminal};
    struct coll_grant granted;
    int rc;

    m->begun_s = wall_s();
    rc = bench_create(&m->b, &cfg, s->cause);
    if (rc) {
        fprintf(stderr, "trib-sim: %s\n", s->cause);
        return EXIT_WRONG;
    }
    table_header(stdout, "trib-sim", &m->o, s->fab, s->nranks, s->host_of_rank);
    printf("# virtual time, seed %llu, %s\n", (unsigned long long)m->own.seed,
           m->own.payload == PAYLOAD_NONE ? "lengths without data" : "data");
    bench_granted(m->b, &granted);
    sweep_granted(s, &granted);
    rc = run_rows(m);
    say_congestion(m);
    if (m->counters)
        counters_print(m->counters, stdout);
    say_cost(m);
    if (!stopped && observe_write_timeline(m) && !rc)
        rc = -EIO;
    bench_destroy(m->b);
    if (stopped)
        return EXIT_SIGNAL + stopped;
    return rc || s->wrong ? EXIT_WRONG : EXIT_OK;
}

/* 0 or -errno, reported. */
static int load_plan(struct sim *m)
{
    struct fab_errors *errs;
    int rc;

    if (!m->own.faults)
        return 0;
    errs = enough_memory(1, sizeof(*errs));
    rc = fault_plan_load(&m->plan, m->own.faults, m->s->fab, m->s->nranks, errs);
    if (rc && errs->total)
        fab_errors_print(errs, stderr);
    else if (rc)
        fprintf(stderr, "trib-sim: %s: %s\n", m->own.faults, strerror(-rc));
    free(errs);
    return rc;
}

static int with_memory(struct sim *m)
{
    struct sweep *s = m->s;
    struct rte_mempool *pool = NULL;
    struct memory mem;
    int code;

    m->frames = capacity_frames(m);
    m->threads = capacity_threads(m);
    if (!capacity_check(m))
        pool = memory_frames(&mem, m->frames, m->threads, m->own.payload == PAYLOAD_NONE, s->cause,
                             sizeof(s->cause));
    if (!pool) {
        fprintf(stderr, "trib-sim: %u ranks on %s: %s\n", s->nranks, s->fab->name, s->cause);
        return EXIT_WRONG;
    }
    catch_signals();
    code = sim_run_sweep(m, pool);
    if (observe_end_trace(m) && code == EXIT_OK)
        code = EXIT_WRONG;
    memory_end(&mem);
    return code;
}

/* A trace is started last, when nothing can be refused any more: it replaces an earlier file. */
static int with_fabric(struct sim *m)
{
    struct sweep *s = m->s;
    int code = EXIT_USAGE;

    if (sweep_plan(s, s->cause) ||
        (m->own.background_flow &&
         background_flow_parse(s->fab, m->own.background_flow, &m->background, s->cause))) {
        fprintf(stderr, "trib-sim: %s\n", s->cause);
        return EXIT_USAGE;
    }
    if (load_plan(m))
        return EXIT_USAGE;
    if (observe_begin(m))
        fprintf(stderr, "trib-sim: %s\n", s->cause);
    else
        code = with_memory(m);
    observe_end_trace(m);
    observe_end(m);
    return code;
}

/* Instead of rows: the training step of a workload. */
static int with_workload(struct sim *m)
{
    struct fab_errors *errs = enough_memory(1, sizeof(*errs));
    struct workload w;
    struct memory mem = {0};
    struct step_opts so = {.fab = m->s->fab,
                           .work = &w,
                           .json = m->o.json,
                           .wide = m->o.wide,
                           .from = m->o.from,
                           .seed = m->own.seed,
                           .stop = &stopped};
    int rc = workload_load(&w, m->own.workload, errs);

    if (rc) {
        fab_errors_print(errs, stderr);
        free(errs);
        return EXIT_USAGE;
    }
    free(errs);
    so.pool = memory_frames(&mem, step_frames(), 1, true, m->s->cause, sizeof(m->s->cause));
    rc = so.pool ? 0 : -ENOMEM;
    catch_signals();
    if (!rc)
        rc = step_run(&so, m->s->cause);
    if (rc)
        fprintf(stderr, "trib-sim: %s\n", m->s->cause);
    if (so.pool)
        memory_end(&mem);
    return stopped ? EXIT_SIGNAL + stopped : rc == -EINVAL ? EXIT_USAGE : rc ? EXIT_WRONG : EXIT_OK;
}

/* 0; -EINVAL, reported: lengths have nothing that a protocol could look at. */
static int check_payload(const struct sim *m, const struct jobs_plan *p)
{
    for (unsigned i = 0; i < p->n && m->own.payload == PAYLOAD_NONE; i++)
        if (p->job[i].algos & COLL_PROTOCOLS) {
            fprintf(
                stderr,
                "trib-sim: --payload: found none, expected data: a protocol of %s looks at it\n",
                p->job[i].name);
            return -EINVAL;
        }
    return 0;
}

/* Runs the jobs when nothing can be refused any more. */
static int run_jobs(struct sim *m, const struct jobs_plan *p)
{
    bool lengths = m->own.payload == PAYLOAD_NONE;
    struct memory mem = {0};
    struct jobs_opts jo = {.fab = m->s->fab,
                           .plan = p,
                           .faults = m->own.faults ? &m->plan : NULL,
                           .file = m->own.jobs,
                           .json = m->o.json,
                           .wide = m->o.wide,
                           .from = m->o.from,
                           .seed = m->own.seed,
                           .lengths = lengths,
                           .frames = m->own.frames ? (unsigned)m->own.frames
                                                   : capacity_frames_of_jobs(m->s->fab, p),
                           .tap = observe_tap(m),
                           .tap_ctx = m,
                           .counters = m->counters,
                           .stop = &stopped};
    int rc = capacity_check_jobs(m, p, jo.frames);

    if (!rc) {
        jo.pool = memory_frames(&mem, jo.frames, 1, lengths, m->s->cause, sizeof(m->s->cause));
        rc = jo.pool ? 0 : -ENOMEM;
    }
    catch_signals();
    if (!rc)
        rc = jobs_run(&jo, m->s->cause);
    if (rc && *m->s->cause)
        fprintf(stderr, "trib-sim: %s\n", m->s->cause);
    if (observe_end_trace(m) && !rc)
        rc = -EIO;
    if (jo.pool)
        memory_end(&mem);
    return stopped ? EXIT_SIGNAL + stopped : rc ? EXIT_WRONG : EXIT_OK;
}

/* Instead of rows: several jobs. */
static int with_jobs(struct sim *m)
{
    struct fab_errors *errs = enough_memory(1, sizeof(*errs));
    struct jobs_plan *p = enough_memory(1, sizeof(*p));
    int code = EXIT_WRONG;

    if (jobs_load(p, m->own.jobs, m->s->fab, errs)) {
        fab_errors_print(errs, stderr);
        code = EXIT_USAGE;
    } else {
        m->s->nranks = p->nranks;
        if (check_payload(m, p) || load_plan(m))
            code = EXIT_USAGE;
        else if (observe_begin(m))
            fprintf(stderr, "trib-sim: %s\n", m->s->cause);
        else
            code = run_jobs(m, p);
        observe_end_trace(m);
        observe_end(m);
        jobs_free(p);
    }
    free(errs);
    free(p);
    return code;
}

static int sim_main(struct sim *m)
{
    struct fab_errors *errs = enough_memory(1, sizeof(*errs));
    struct fabric *f = fabric_load(m->o.conf, errs);
    char why[PROTO_CONF_TEXT];
    int code = EXIT_WRONG;

    m->s = enough_memory(1, sizeof(*m->s));
    if (!f)
        fab_errors_print(errs, stderr);
    free(errs);
    if (f && proto_setup(f, why)) {
        fprintf(stderr, "%s\n", why);
        fabric_free(f);
        f = NULL;
        code = EXIT_USAGE;
    }
    if (f) {
        m->s->o = &m->o;
        m->s->fab = f;
        m->s->terminal = isatty(STDERR_FILENO);
        m->s->place = sim_place;
        m->s->row_done = row_done;
        m->s->ctx = m;
        code = m->own.workload ? with_workload(m) : m->own.jobs ? with_jobs(m) : with_fabric(m);
        sweep_free(m->s);
    }
    if (f)
        fabric_free(f);
    fault_plan_free(&m->plan);
    free(m->s);
    return code;
}

int main(int argc, char **argv)
{
    struct sim m = {0};
    struct provenance from;
    int code;

    memory_lay_out(true);
    proto_name_ends(EXIT_WRONG);
    if (perf_load_protocols(argc, argv))
        return EXIT_USAGE;
    if (!sim_options_begin(&m.own, &m.o, argc, argv, &code))
        return code;
    if (m.own.chaos || m.own.chaos_case)
        return campaign_run(&(struct campaign_cfg){.seeds = m.own.chaos,
                                                   .conf = m.own.conf,
                                                   .faults = m.own.faults,
                                                   .algo = m.own.chaos_algo,
                                                   .wall_s = m.own.seed_wall,
                                                   .case_file = m.own.chaos_case,
                                                   .save_file = m.own.save_case});
    if (!report_can_write("trib-sim", &m.o))
        return EXIT_USAGE;
    provenance_begin(&from, argc, (const char *const *)argv);
    provenance_file(&from, m.o.conf);
    provenance_file(&from, m.own.faults);
    provenance_file(&from, m.own.workload);
    provenance_file(&from, m.own.jobs);
    provenance_file(&from, m.o.schedule);
    perf_protocol_files(&from);
    m.o.from = &from;
    code = sim_main(&m);
    provenance_end(&from);
    schedule_option_free(&m.o);
    return atomic_output_end("trib-sim") && code == EXIT_OK ? EXIT_WRONG : code;
}
