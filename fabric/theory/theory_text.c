/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"
#include "fabric/report/plan.h"
#include "fabric/theory/theory.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#define GB 1e9

/* Takes ownership of the value that it adds. */
static void theory_text_put(json_t *o, const char *key, json_t *v)
{
    if (o)
        json_object_set_new(o, key, v);
    else
        json_decref(v);
}

static json_t *list_in(json_t *o, const char *key)
{
    json_t *a = o ? json_array() : NULL;

    if (a)
        json_object_set_new(o, key, a);
    return a;
}

static json_t *entry_of(json_t *list)
{
    json_t *o = list ? json_object() : NULL;

    if (o)
        json_array_append_new(list, o);
    return o;
}

static double gather_bandwidth(const struct cost_levels *l, unsigned i)
{
    const struct cost_level *v = &l->lv[i];
    static const enum cost_way gather[FAB_MAX_LEVELS] = {COST_GATHER};
    struct cost_axis a = {v->below, v->hosts / v->below};

    return 1 / cost_collective(l, a, 1, gather).s;
}

void model_print_levels(const struct fabric *f, const struct cost_levels *l, FILE *out,
                        json_t *json)
{
    static const char *const heads[] = {"level",          "groups",        "GPUs",
                                        "members",        "GB/s a member", "all-gather GB/s",
                                        "bisection GB/s", "reduces",       NULL};
    json_t *list = list_in(json, "levels");
    struct fab_level lv[FAB_MAX_LEVELS];
    struct table *t = table_new(heads);
    unsigned n = fabric_levels(f, lv, FAB_MAX_LEVELS);

    for (unsigned i = 0; i < n; i++) {
        double member = (double)lv[i].member_bps / 8, bisection = (double)lv[i].bisection_bps / 8;
        json_t *e = entry_of(list);

        table_cell(t, "%s", lv[i].role == FAB_ROLE_HOST ? "mesh" : fab_role_name(lv[i].role));
        table_cell(t, "%u", lv[i].groups);
        table_cell(t, "%u", lv[i].hosts);
        table_cell(t, "%u", lv[i].members);
        table_cell(t, "%.0f", member / GB);
        if (lv[i].members > 1)
            table_cell(t, "%.0f", gather_bandwidth(l, i) / GB);
        else
            table_cell(t, "%s", "");
        table_cell(t, "%.0f", bisection / GB);
        table_cell(t, "%s", l->lv[i].multimem ? "multimem" : l->lv[i].reduces ? "yes" : "no");
        theory_text_put(e, "level", json_string(fab_role_name(lv[i].role)));
        theory_text_put(e, "groups", json_integer(lv[i].groups));
        theory_text_put(e, "gpus", json_integer(lv[i].hosts));
        theory_text_put(e, "members", json_integer(lv[i].members));
        theory_text_put(e, "member_Bps", json_real(member));
        if (lv[i].members > 1)
            theory_text_put(e, "all_gather_Bps", json_real(gather_bandwidth(l, i)));
        theory_text_put(e, "bisection_Bps", json_real(bisection));
    }
    fprintf(out, "\nLevels (a group of each; each direction, bisection both together)\n");
    table_print(t, out);
}

static const char *level_name(const struct cost_levels *l, unsigned i)
{
    return l->lv[i].role == FAB_ROLE_HOST ? "mesh" : fab_role_name(l->lv[i].role);
}

static void print_wire(const struct model_row *rows, unsigned n, FILE *out)
{
    static const char *const heads[] = {"collective", "algorithm",    "size (B)",
                                        "time (us)",  "algbw (GB/s)", NULL};
    struct table *t = NULL;

    for (unsigned i = 0; i < n; i++) {
        const struct model_row *r = &rows[i];

        if (!(r->wire_s > 0))
            continue;
        t = t ? t : table_new(heads);
        table_cell(t, "%s", r->collective);
        table_cell(t, "%s", r->algo);
        table_cell(t, "%" PRIu64, r->bytes);
        table_cell(t, "%.2f", r->wire_s * 1e6);
        table_cell(t, "%.2f", (double)r->bytes / r->wire_s / GB);
    }
    if (!t)
        return;
    fprintf(out, "\nWith headers and latency (all messages of an all-to-all leave at once)\n");
    table_print(t, out);
}

void model_print_rows(const struct cost_levels *l, const struct model_row *rows, unsigned n,
                      FILE *out, json_t *json)
{
    static const char *const heads[] = {"collective", "algorithm",    "size (B)",
                                        "time (us)",  "algbw (GB/s)", "busbw (GB/s)",
                                        "steps",      "binds",        NULL};
    json_t *list = list_in(json, "results");
    struct table *t = table_new(heads);

    for (unsigned i = 0; i < n; i++) {
        const struct model_row *r = &rows[i];
        json_t *e = entry_of(list), *per_level = e ? json_array() : NULL;

        table_cell(t, "%s", r->collective);
        table_cell(t, "%s", r->algo);
        table_cell(t, "%" PRIu64, r->bytes);
        table_cell(t, "%.2f", r->cost.s * 1e6);
        table_cell(t, "%.2f", r->algbw / GB);
        table_cell(t, "%.2f", r->busbw / GB);
        table_cell(t, "%u", r->steps);
        table_cell(t, "%s", level_name(l, r->cost.binds));
        theory_text_put(e, "collective", json_string(r->collective));
        theory_text_put(e, "algorithm", json_string(r->algo));
        theory_text_put(e, "bytes", json_integer((json_int_t)r->bytes));
        theory_text_put(e, "time_s", json_real(r->cost.s));
        if (r->wire_s > 0)
            theory_text_put(e, "wire_s", json_real(r->wire_s));
        theory_text_put(e, "algbw_Bps", json_real(r->algbw));
        theory_text_put(e, "busbw_Bps", json_real(r->busbw));
        theory_text_put(e, "steps", json_integer(r->steps));
        theory_text_put(e, "binds", json_string(level_name(l, r->cost.binds)));
        for (unsigned v = 0; v < l->n && e; v++)
            json_array_append_new(per_level, json_real(r->cost.level_s[v]));
        theory_text_put(e, "level_s", per_level);
    }
    fprintf(out, "\nCollectives (bandwidth term)\n");
    table_print(t, out);
    print_wire(rows, n, out);
}

static void bytes_row(struct table *t, json_t *list, const char *what, struct cost_bytes b)
{
    const double cell[] = {b.gpu_out, b.gpu_in, b.switch_in, b.switch_out};
    static const char *const key[] = {"gpu_out", "gpu_in", "switch_in", "switch_out"};
    json_t *e = entry_of(list);

    table_cell(t, "%s", what);
    theory_text_put(e, "what", json_string(what));
    for (unsigned i = 0; i < sizeof(cell) / sizeof(cell[0]); i++) {
        table_cell(t, "%.0f", cell[i]);
        theory_text_put(e, key[i], json_real(cell[i]));
    }
}

void model_print_bytes(const struct cost_levels *l, struct cost_axis a, uint64_t bytes, FILE *out,
                       json_t *json)
{
    static const char *const heads[] = {
        "at", "out of a GPU", "into a GPU", "into switches", "out of switches", NULL};
    unsigned gpus = (unsigned)cost_children(l, 0, a), nodes = (unsigned)a.degree / gpus;
    json_t *list;
    struct table *t;

    if (l->lv[0].role != FAB_ROLE_NVSWITCH || a.inner != 1 || gpus < l->lv[0].hosts)
        return;
    t = table_new(heads);
    list = list_in(json, "bytes");
    bytes_row(t, list, "all_reduce nvls, a node's switches",
              cost_bytes_reduced((double)bytes, gpus, false));
    bytes_row(t, list, "the same, its own part crosses too",
              cost_bytes_reduced((double)bytes, gpus, true));
    if (nodes > 1) {
        bytes_row(t, list, "all_gather hier, a node's switches",
                  cost_bytes_node((double)bytes, gpus));
        bytes_row(t, list, "all_gather hier, the leaf level",
                  cost_bytes_leaf((double)bytes, nodes, gpus));
    }
    fprintf(out, "\nBytes of payload, for %" PRIu64 " B\n", bytes);
    table_print(t, out);
}

static void workload_head(const struct workload *w, const struct cost_levels *l, FILE *out,
                          json_t *o)
{
    double step = workload_step_flops(w) /
                  (device_flops(w->device, w->type) * (double)workload_gpus(w)),
           nvlink = device_nvlink_Bps(w->device);
    char bubble[40] = "";

    fprintf(out, "\n");
    table_line(out, false, "Workload %s (%s): %.1f B parameters, %.1f B of them for a token",
               w->name, w->path, workload_params(w) / 1e9, workload_active_params(w) / 1e9);
    table_line(out, false,
               "%" PRIu64 " %s: tp %u, dp %u, pp %u, ep %u, ZeRO %u; %" PRIu64
               " tokens a step, %.4g a GPU",
               workload_gpus(w), w->device->name, w->tp, w->dp, w->pp, w->ep, w->zero,
               w->batch_tokens, (double)w->batch_tokens / (double)workload_gpus(w));
    if (w->pp > 1)
        snprintf(bubble, sizeof(bubble), "; pipeline bubble %.1f %%", 100 * roofline_bubble(w));
    table_line(out, false,
               "a step: %.3g FLOPs, %.2f s at the peak of %s, %.2f s at %.0f %% of it%s",
               workload_step_flops(w), step, dev_type_name(w->type), step / w->utilisation,
               100 * w->utilisation, bubble);
    fprintf(out, "weights and Adam's state: %.0f GB, at least %.0f GPUs of %.0f GB\n",
            workload_state_bytes(w) / GB, ceil(workload_state_bytes(w) / w->device->hbm_bytes),
            w->device->hbm_bytes / GB);
    if (w->tokens > 0)
        fprintf(out, "%.3g tokens: %.2g FLOPs, %.1f days\n", w->tokens, workload_total_flops(w),
                workload_total_seconds(w) / 86400);
    if (l->lv[0].role == FAB_ROLE_NVSWITCH && l->lv[0].child_Bps != nvlink)
        table_line(out, false,
                   "note: GPUs of this fabric have NVLinks of %.0f GB/s, which is used here; %s "
                   "have %.0f",
                   l->lv[0].child_Bps / GB, w->device->name, nvlink / GB);
    theory_text_put(o, "name", json_string(w->name));
    theory_text_put(o, "gpus", json_integer((json_int_t)workload_gpus(w)));
    theory_text_put(o, "parameters", json_real(workload_params(w)));
    theory_text_put(o, "active_parameters", json_real(workload_active_params(w)));
    theory_text_put(o, "step_flops", json_real(workload_step_flops(w)));
    theory_text_put(o, "step_peak_s", json_real(step));
    theory_text_put(o, "bubble", json_real(roofline_bubble(w)));
    theory_text_put(o, "state_bytes", json_real(workload_state_bytes(w)));
    theory_text_put(o, "total_s", json_real(workload_total_seconds(w)));
}

static void roof_row(const struct roof *r, const struct cost_levels *l, struct table *t, json_t *e)
{
    bool free_of_it = r->comms_s <= r->math_s;

    table_cell(t, "%s", roof_kind_name(r->kind));
    table_cell(t, "%" PRIu64, r->degree);
    table_cell(t, "%.3f", r->math_s * 1e3);
    table_cell(t, "%.3f", r->comms_s * 1e3);
    table_cell(t, "%.3f", r->comms_s / r->math_s);
    table_cell(t, "%s", level_name(l, r->level));
    if (r->kind == ROOF_DP)
        table_cell(t, "%.0f of %.0f tokens a GPU", r->has, r->critical);
    else if (r->kind == ROOF_TP)
        table_cell(t, "degree %.0f, free to %.1f", r->has, r->critical);
    else
        table_cell(t, "%s", "");
    table_cell(t, "%s", free_of_it ? "computing" : "communication");
    theory_text_put(e, "parallel", json_string(roof_kind_name(r->kind)));
    theory_text_put(e, "degree", json_integer((json_int_t)r->degree));
    theory_text_put(e, "math_s", json_real(r->math_s));
    theory_text_put(e, "comms_s", json_real(r->comms_s));
    theory_text_put(e, "level", json_string(level_name(l, r->level)));
    theory_text_put(e, "has", json_real(r->has));
    theory_text_put(e, "critical", json_real(r->critical));
    theory_text_put(e, "binds", json_string(free_of_it ? "computing" : "communication"));
}

void model_print_workload(const struct workload *w, const struct cost_levels *l, FILE *out,
                          json_t *json)
{
    static const char *const heads[] = {"parallel",    "degree", "T_math: ms",
                                        "T_comms: ms", "ratio",  "level",
                                        "has, needs",  "binds",  NULL};
    json_t *o = json ? json_object() : NULL, *list = list_in(o, "rooflines");
    struct roof rows[ROOF_KINDS];
    struct table *t = table_new(heads);
    bool any = false;

    workload_head(w, l, out, o);
    roofline_workload(w, l, rows);
    for (unsigned i = 0; i < ROOF_KINDS; i++) {
        if (!rows[i].used)
            continue;
        any = true;
        roof_row(&rows[i], l, t, entry_of(list));
    }
    fprintf(out, "\nRooflines of one step, at the device's peak\n");
    table_print(t, out);
    if (!any)
        fprintf(out, "  one GPU: nothing is sent\n");
    theory_text_put(json, "workload", o);
}

static void bom_row(struct table *t, const char *part, uint64_t n, const char *what)
{
    table_cell(t, "%s", part);
    table_cell(t, "%" PRIu64, n);
    table_cell(t, "%s", what);
}

static void bom_json(const struct bom *b, const struct gpu_device *d, json_t *o)
{
    json_t *switches = list_in(o, "switches"), *cables = list_in(o, "cables");

    theory_text_put(o, "gpus", json_integer((json_int_t)b->gpus));
    theory_text_put(o, "node", json_string(d->name));
    theory_text_put(o, "nodes", json_integer((json_int_t)b->nodes));
    theory_text_put(o, "nvswitches", json_integer((json_int_t)b->nvswitches));
    theory_text_put(o, "nvlinks", json_integer((json_int_t)b->nvlinks));
    for (unsigned t = 0; t < b->tiers && o; t++) {
        json_array_append_new(switches, json_integer((json_int_t)b->switches[t]));
        json_array_append_new(cables, json_integer((json_int_t)b->cables[t]));
    }
    theory_text_put(o, "all_switches", json_integer((json_int_t)b->all_switches));
    theory_text_put(o, "all_cables", json_integer((json_int_t)b->all_cables));
    theory_text_put(o, "mesh_ports", json_integer((json_int_t)b->mesh_ports));
    theory_text_put(o, "mesh_cables", json_integer((json_int_t)b->mesh_cables));
    theory_text_put(o, "star_cables", json_integer((json_int_t)b->star_cables));
}

void model_print_bom(const struct bom *b, const struct gpu_device *d, FILE *out, json_t *json)
{
    static const char *const heads[] = {"part", "number", "what", NULL};
    static const char *const tier[BOM_TIERS] = {"leaves",   "spines",   "cores",
                                                "4th tier", "5th tier", "6th tier"};
    json_t *o = json ? json_object() : NULL;
    struct table *t = table_new(heads);
    char text[80];

    snprintf(text, sizeof(text), "%u GPUs, %u NVSwitches", d->gpus, d->nvswitches);
    bom_row(t, "nodes", b->nodes, text);
    bom_row(t, "NVSwitches", b->nvswitches, "in nodes");
    snprintf(text, sizeof(text), "in nodes, %u a GPU of %.0f GB/s", d->links, d->link_Bps / GB);
    bom_row(t, "NVLinks", b->nvlinks, text);
    for (unsigned i = 0; i < b->tiers; i++) {
        snprintf(text, sizeof(text), "%u ports of %.0f GB/s", DEV_SWITCH_PORTS, DEV_PORT_BPS / GB);
        bom_row(t, tier[i], b->switches[i], text);
    }
    for (unsigned i = 0; i < b->tiers; i++) {
        snprintf(text, sizeof(text), "%s to %s", i ? tier[i - 1] : "GPUs", tier[i]);
        bom_row(t, "cables", b->cables[i], text);
    }
    bom_row(t, "all switches", b->all_switches, "NVSwitches too");
    bom_row(t, "all cables", b->all_cables, "without NVLinks");
    fprintf(out,
            "Bill of materials: %" PRIu64
            " GPUs in nodes of %s, %u scale-out tiers, full bisection\n",
            b->gpus, d->name, b->tiers);
    table_print(t, out);
    table_line(out, false,
               "instead of switches: a full mesh has %" PRIu64 " cables and %" PRIu64
               " ports a GPU; one switch of %" PRIu64 " ports as many cables",
               b->mesh_cables, b->mesh_ports, b->star_cables);
    bom_json(b, d, o);
    theory_text_put(json, "bom", o);
}
