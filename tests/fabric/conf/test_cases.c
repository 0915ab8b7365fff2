/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each line of cases/NAME is read as: accepted, with what the file leaves open completed, or refused by which words at which line.
 * Values at each bound are among them, and one beyond. cases/NAME.expected has the answers.
 */
#include "fabric/conf/faults.h"
#include "fabric/conf/workload.h"
#include "tests/fabric/load.h"
#include "tests/support/expected.h"

#define CASES "tests/fabric/conf/cases/"

static struct fab_errors errs;

/* The next line that is no comment, with each \n a line of its own; false: there is none. */
static bool next_case(FILE *in, char *line, size_t size, FILE *out)
{
    do {
        if (!fgets(line, (int)size, in))
            return false;
        line[strcspn(line, "\n")] = 0;
    } while (*line == '#');
    fprintf(out, "%s\n", line);
    for (char *at = line; (at = strstr(at, "\\n"));) {
        *at++ = '\n';
        *at = ' ';
    }
    return true;
}

static void each_case(const char *name, void (*answer)(char *line, FILE *out))
{
    char path[96], line[4096];
    struct expected e;
    FILE *in;

    snprintf(path, sizeof(path), CASES "%s", name);
    in = fopen(path, "r");
    assert_non_null(in);
    expected_begin(&e);
    while (next_case(in, line, sizeof(line), e.out))
        answer(line, e.out);
    fclose(in);
    snprintf(path, sizeof(path), CASES "%s.expected", name);
    expected_same(&e, path);
}

static void refused(FILE *out)
{
    char *text = NULL, *save = NULL;
    size_t size;
    FILE *errors = open_memstream(&text, &size);

    fab_errors_print(&errs, errors);
    fclose(errors);
    assert_true(errs.n > 0);
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        fprintf(out, "    %s\n", l);
    free(text);
}

#define NODES                                                                                      \
    "nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = \"l\"; role = \"leaf\"; }"
#define REST "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };"

/* The conf that a line stands for. */
static void complete(char *line, char *all, size_t size)
{
    static const char base[] = NODES "%s ); links = ( { a = \"a\"; b = \"l\"; }, "
                                     "{ a = \"b\"; b = \"l\"; }%s );" REST "%s";
    static const char *const lists[] = {"+ nodes = (", "+ links = ("};
    char more[2][4096] = {"", ""}, *rest = line + 1;

    /* What is added to a list of the base goes into it. */
    for (unsigned i = 0; i < 2 && *line == '+'; i++)
        if (!strncmp(line, lists[i], strlen(lists[i]))) {
            char *end = strrchr(line, ')');

            snprintf(more[i], sizeof(more[i]), ",%.*s", (int)(end - line) - (int)strlen(lists[i]),
                     line + strlen(lists[i]));
            rest = end + 2;
        }
    if (*line == '+')
        snprintf(all, size, base, more[0], more[1], rest);
    else if (*line == '-')
        snprintf(all, size, REST NODES " ); links = (%s%s", line + 1,
                 line[strlen(line) - 1] == ';' ? "" : " );");
    else
        snprintf(all, size, "%s", line);
}

static void of_fabric(char *line, FILE *out)
{
    char all[16384];
    struct fabric *f;

    complete(line, all, sizeof(all));
    f = fabric_load_string(all, "f.conf", &errs);
    if (!f) {
        refused(out);
        return;
    }
    fprintf(out,
            "    %s: %u hosts, %u switches, %u links, %u trees, %u processes, mtu %u, window %u, "
            "timeout %u, retry %u\n",
            f->name, f->n_hosts, f->n_switches, f->n_links, f->n_trees, f->n_procs, f->mtu,
            f->transport.window, f->transport.ack_timeout, f->transport.retry_count);
    for (unsigned i = 0; i < f->n_switches; i++) {
        const struct fab_protocol *p = f->nodes[f->switches[i]].reduce.protocol;

        for (unsigned k = 0; i == 0 && p && k < p->n_keys; k++)
            fprintf(out, "    %s of %s: %ld%s, line %d\n", p->key[k].name, p->name, p->key[k].value,
                    p->key[k].known ? ", of reduce too" : "", p->key[k].line);
    }
    fabric_free(f);
}

static void of_plan(char *line, FILE *out)
{
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct fault_plan p;
    char all[4096];

    snprintf(all, sizeof(all), *line == '=' ? "%s" : "faults = ( %s );", line + (*line == '='));
    if (fault_plan_load_string(&p, all, "p.conf", f, 4, &errs)) {
        refused(out);
    } else {
        for (unsigned i = 0; i < p.n; i++)
            fprintf(out, "    %ld of %u %u line %u\n", p.e[i].at_ps, (unsigned)p.e[i].of,
                    p.e[i].which, p.e[i].line);
        fault_plan_print(&p, f, out);
        fault_plan_free(&p);
    }
    fabric_free(f);
}

static void numbers(const struct workload *w, FILE *out)
{
    fprintf(out,
            "    %s on %s: %u heads of %u, %u of values, attention %.9g, experts %u by %u, %u "
            "dense, type %s wire %s, batch %lu tokens %.9g\n",
            w->name, w->device->name, w->heads, w->head_dim, w->kv_heads, w->attention, w->experts,
            w->expert_d_ff, w->dense_layers, dev_type_name(w->type), dev_type_name(w->wire),
            w->batch_tokens, w->tokens);
    fprintf(out, "    %lu GPUs, microbatch %lu, stage %u, expert stride %lu", workload_gpus(w),
            workload_microbatch_tokens(w), workload_stage_layers(w), workload_expert_stride(w));
    for (unsigned a = 0; a < WORK_AXES; a++)
        fprintf(out, ", %s %u by %lu", work_axis_name((enum work_axis)a),
                workload_degree(w, (enum work_axis)a), workload_stride(w, (enum work_axis)a));
    for (unsigned g = 0; g < WORK_GROUPS; g++)
        fprintf(out, " %s=%s", work_group_name((enum work_group)g), w->algorithm[g]);
    fprintf(out, "\n    %.9g %.9g %.9g %.9g parameters, %.9g %.9g FLOPs, %.9g s, %.9g B\n",
            workload_params(w), workload_active_params(w), workload_dense_ff(w),
            workload_expert_ff(w, true), workload_step_flops(w), workload_total_flops(w),
            workload_total_seconds(w), workload_state_bytes(w));
}

static void of_workload(char *line, FILE *out)
{
    static const char text[] = "device = \"h100\"; model = { layers = 4; d_model = 256; d_ff = "
                               "512; heads = 16; vocabulary = 100; %s };\n"
                               "training = { sequence = 128; batch_tokens = 8192; utilisation = "
                               "0.5; %s };\nparallel = { %s };\n%s";
    const char *part[4];
    char all[8192];
    struct workload w;

    for (unsigned i = 0; i < 4; i++) {
        part[i] = line;
        line += strcspn(line, "|");
        if (*line)
            *line++ = 0;
    }
    snprintf(all, sizeof(all), text, part[0], part[1], part[2], part[3]);
    if (workload_load_string(&w, all, "w.conf", &errs))
        refused(out);
    else
        numbers(&w, out);
}

static void fabrics(void **state)
{
    (void)state;
    each_case("fabrics", of_fabric);
}

static void plans(void **state)
{
    (void)state;
    each_case("plans", of_plan);
}

static void workloads(void **state)
{
    (void)state;
    each_case("workloads", of_workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fabrics), cmocka_unit_test(plans),
                                       cmocka_unit_test(workloads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
