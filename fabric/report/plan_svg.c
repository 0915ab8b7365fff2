/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric as a picture (SVG), and as a graph for Graphviz.
 *
 * Names are letters, digits and "_.-" (fabric/conf), so nothing is escaped. Every line has the name
 * of its first link as data-link, those of all links, if it stands for several, as data-links, and
 * every box that of its first node as data-node, so that other programs can colour them.
 */
#include "base/shortage/enough.h"
#include "fabric/report/drawing.h"
#include "fabric/report/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TREES   8u   /* drawn, each in its colour */
#define COUNTED 40u  /* lines that say how many links they stand for */
#define EDGES   240u /* limit of drawn edges of trees */
#define CAPTION 22.0
#define CROWD   200u /* with more lines trees are drawn thinner */

/* Okabe and Ito's colours: also the colour-blind can tell them apart. */
static const char *const colours[TREES] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                           "#e69f00", "#56b4e9", "#8b5cf6", "#b3a100"};

/* Lines of links differ by rate in shade and dashes (the highest rate is solid), so that a tree
 * beside them stays visible. */
static const char *const dashes[DRAWING_RATES] = {"none",     "9 3", "4 3",
                                                  "12 3 3 3", "2 3", "9 2 2 2 2 2"};

/* Rank of a link's rate among the fabric's rates, from the highest on. */
static unsigned rate_class(const struct drawing *d, uint64_t rate)
{
    unsigned k = 0;

    while (k < d->n_rates && d->rate[k] > rate)
        k++;
    return k;
}

/* 1.5 pixels for 400 Gb/s, one more for each doubling. */
static double width_of(uint64_t bps)
{
    double w = 1.5 + log2((double)bps / 400e9);

    return w < 1 ? 1 : w > 6 ? 6 : w;
}

static double bottom(const struct drawing_box *b)
{
    return b->y + DRAWING_BOX_HEIGHT;
}

/* Where a line to `other` ends: at the box's lower or upper edge; in the same row at the lower one. */
static double end_y(const struct drawing_box *b, const struct drawing_box *other)
{
    return b->row < other->row ? bottom(b) : b->row > other->row ? b->y : bottom(b);
}

static void path(const struct drawing_box *a, const struct drawing_box *b, double shift, FILE *out)
{
    double ya = end_y(a, b), yb = end_y(b, a);

    if (a->row == b->row) /* an arc below both boxes */
        fprintf(out, "M%.1f %.1f Q%.1f %.1f %.1f %.1f", a->x + shift, ya, (a->x + b->x) / 2,
                ya + drawing_arc(a, b), b->x + shift, yb);
    else
        fprintf(out, "M%.1f %.1f L%.1f %.1f", a->x + shift, ya, b->x + shift, yb);
}

/* Prints the names of all links of a line, for programs that colour it by traffic. */
static void all_links(const struct fabric *f, const struct drawing *d,
                      const struct drawing_line *line, FILE *out)
{
    const char *before = " data-links=\"";

    for (unsigned i = line->link; i < f->n_links; i++) {
        fab_id a = d->box_of[f->links[i].a], b = d->box_of[f->links[i].b];

        if ((a < b ? a : b) != line->a || (a < b ? b : a) != line->b)
            continue;
        fprintf(out, "%s%s", before, f->links[i].name);
        before = " ";
    }
    fputc('"', out);
}

static void lines(const struct fabric *f, const struct drawing *d, FILE *out)
{
    char rate[32], latency[32];

    for (unsigned i = 0; i < d->n_lines; i++) {
        const struct drawing_line *l = &d->line[i];
        const struct fab_link *first = &f->links[l->link];

        fprintf(out, "<path class=\"link r%u\" data-link=\"%s\"", rate_class(d, first->rate_bps),
                first->name);
        if (l->links > 1 && !fabric_is_large(f))
            all_links(f, d, l, out);
        fprintf(out, " stroke-width=\"%.1f\" d=\"", width_of(l->rate_bps));
        path(&d->box[l->a], &d->box[l->b], 0, out);
        fprintf(out, "\"><title>%s", first->name);
        if (l->links > 1)
            fprintf(out, " and %u more, %s in all", l->links - 1,
                    plan_rate(l->rate_bps, rate, sizeof(rate)));
        else
            fprintf(out, ", %s", plan_rate(l->rate_bps, rate, sizeof(rate)));
        fprintf(out, ", %s</title></path>\n",
                plan_duration(first->latency_ps, latency, sizeof(latency)));
    }
}

static int by_boxes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Number of lines from a box to others of that row. */
static unsigned lines_to_row(const struct drawing *d, unsigned box, unsigned row)
{
    unsigned n = 0;

    for (unsigned i = 0; i < d->n_lines; i++)
        n += (d->line[i].a == box && d->box[d->line[i].b].row == row) ||
             (d->line[i].b == box && d->box[d->line[i].a].row == row);
    return n;
}

/* Prints above everything else how many links a line stands for: near the end with fewer lines, where lines
 * are apart. */
static void counts_print(const struct fabric *f, const struct drawing *d, FILE *out)
{
    char rate[32];

    for (unsigned i = 0; i < d->n_lines; i++) {
        const struct drawing_line *l = &d->line[i];
        const struct drawing_box *a = &d->box[l->a], *b = &d->box[l->b];
        unsigned at_a = lines_to_row(d, l->a, b->row), at_b = lines_to_row(d, l->b, a->row);
        double near_b = at_a == at_b ? 0.5 : at_a < at_b ? 0.2 : 0.8;
        uint64_t each = f->links[l->link].rate_bps;

        if (l->links < 2 || a->row == b->row || (at_a > 1 && at_b > 1))
            continue;
        fprintf(out, "<text class=\"count\" x=\"%.1f\" y=\"%.1f\">%u",
                a->x + near_b * (b->x - a->x),
                end_y(a, b) + near_b * (end_y(b, a) - end_y(a, b)) + 4, l->links);
        if (each * l->links == l->rate_bps)
            fprintf(out, "&#215;%s", plan_rate(each, rate, sizeof(rate)));
        fputs("</text>\n", out);
    }
}

/* A tree's edges between boxes, sorted: pairs of boxes, each once even if several nodes of a box have a
 * parent there. Mallocs *edge. */
static unsigned find_edges(const struct fabric *f, const struct drawing *d, unsigned t,
                           uint64_t **edge)
{
    const fab_id *parent = fabric_tree_parents(f, &f->trees[t]);
    unsigned n = 0, k = 0;

    *edge = enough_memory(f->n_nodes + 1u, sizeof(**edge));
    for (unsigned i = 0; i < f->n_nodes; i++)
        if (parent[i] != FAB_NONE && d->box_of[i] != d->box_of[parent[i]])
            (*edge)[n++] = (uint64_t)d->box_of[i] << 32 | d->box_of[parent[i]];
    if (n)
        qsort(*edge, n, sizeof(**edge), by_boxes);
    for (unsigned i = 0; i < n; i++)
        if (!i || (*edge)[i] != (*edge)[i - 1])
            (*edge)[k++] = (*edge)[i];
    return k;
}

static unsigned count_edges(const struct fabric *f, const struct drawing *d, unsigned t)
{
    uint64_t *edge;
    unsigned n = find_edges(f, d, t, &edge);

    free(edge);
    return n;
}

/* Chooses the trees to draw: at most TREES, fewer if each has many edges. Skips trees inside a box. Returns
 * their number. */
static unsigned plan_svg_choose(const struct fabric *f, const struct drawing *d, unsigned *tree)
{
    unsigned n = 0, edges = 0;

    for (unsigned t = 0; t < f->n_trees && n < TREES; t++) {
        unsigned more = 0;

        if (!d->box[d->box_of[f->trees[t].root]].domains)
            more = count_edges(f, d, t);
        if (!more)
            continue;
        if (n && edges + more > EDGES)
            break;
        edges += more;
        tree[n++] = t;
    }
    return n;
}

/* Distance of tree k from the middle of the line between two boxes: trees are drawn beside the line. */
static double beside(const struct drawing *d, unsigned a, unsigned b, unsigned k)
{
    double from = 2, lean, dx = d->box[a].x - d->box[b].x, dy = d->box[a].y - d->box[b].y;

    for (unsigned i = 0; i < d->n_lines; i++)
        if (d->line[i].a == (a < b ? a : b) && d->line[i].b == (a < b ? b : a))
            from = width_of(d->line[i].rate_bps) / 2 + 2.5;
    lean = dy != 0 ? sqrt(1 + dx * dx / (dy * dy)) : 1;
    if (lean > 2)
        lean = 2;
    return (k % 2 ? -1 : 1) * lean * (from + 3.0 * (double)(k / 2));
}

/* Draws tree t, which is number k of the drawn trees. */
static void tree(const struct fabric *f, const struct drawing *d, unsigned t, unsigned k, FILE *out)
{
    uint64_t *edge;
    unsigned n = find_edges(f, d, t, &edge);

    for (unsigned i = 0; i < n; i++) {
        unsigned a = (unsigned)(edge[i] >> 32), b = (unsigned)(edge[i] & UINT32_MAX);

        fprintf(out, "<path class=\"tree\" stroke=\"%s\" d=\"", colours[k]);
        path(&d->box[a], &d->box[b], beside(d, a, b, k), out);
        fprintf(out, "\"><title>tree %u, root %s</title></path>\n", f->trees[t].id,
                f->nodes[f->trees[t].root].name);
    }
    free(edge);
}

static const char *role_class(const struct fabric *f, const struct drawing_box *b)
{
    return b->hosts ? "host" : fab_role_name(f->nodes[b->node].role);
}

static void boxes(const struct fabric *f, const struct drawing *d, FILE *out)
{
    for (unsigned i = 0; i < d->n_boxes; i++) {
        const struct drawing_box *b = &d->box[i];

        fprintf(out,
                "<g class=\"%s\" data-node=\"%s\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.0f\" rx=\"4\"/>",
                role_class(f, b), f->nodes[b->node].name, b->x - b->width / 2, b->y, b->width,
                DRAWING_BOX_HEIGHT);
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>", b->x, b->y + 16, b->label);
        if (b->hosts + b->nvswitches > 1)
            fprintf(out, "<title>%u hosts, %u NVSwitches</title>", b->hosts, b->nvswitches);
        fputs("</g>\n", out);
    }
}

/* ---- the legend ---- */

/* Prints a line for each rate and latency of links. Returns the number of lines. */
static unsigned plan_svg_rates(const struct fabric *f, const struct drawing *d, double y, FILE *out)
{
    bool *done = enough_memory(f->n_links + 1u, sizeof(*done));
    char rate[32], latency[32];
    unsigned n = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];
        unsigned alike = 0;

        if (done[i])
            continue;
        for (unsigned j = i; j < f->n_links; j++)
            if (f->links[j].rate_bps == l->rate_bps && f->links[j].latency_ps == l->latency_ps)
                done[j] = true, alike++;
        if (out) {
            fprintf(out,
                    "<path class=\"link r%u\" stroke-width=\"%.1f\" d=\"M24 %.1f h56\"/><text "
                    "class=\"key\" x=\"88\" y=\"%.1f\">%s, %s: %u links</text>\n",
                    rate_class(d, l->rate_bps), width_of(l->rate_bps), y + n * CAPTION - 4,
                    y + n * CAPTION, plan_rate(l->rate_bps, rate, sizeof(rate)),
                    plan_duration(l->latency_ps, latency, sizeof(latency)), alike);
        }
        n++;
    }
    free(done);
    return n;
}

static void tree_keys(const struct fabric *f, const unsigned *tree, unsigned n, double y, FILE *out)
{
    char ports[64];

    for (unsigned k = 0; k < n; k++) {
        const struct fab_tree *t = &f->trees[tree[k]];

        fprintf(out,
                "<path class=\"tree\" stroke=\"%s\" d=\"M24 %.1f h56\"/><text class=\"key\" "
                "x=\"88\" y=\"%.1f\">aggregation tree %u, root %s",
                colours[k], y + k * CAPTION - 4, y + k * CAPTION, t->id, f->nodes[t->root].name);
        if (plan_has_turns(f))
            fprintf(out, ", host ports %s", plan_tree_ports(f, t, ports, sizeof(ports)));
        if (k + 1 == n && f->n_trees > n)
            fprintf(out, " (and %u more, not drawn)", f->n_trees - n);
        fputs("</text>\n", out);
    }
}

static const char style[] =
    "<style>\n"
    "text { font: 12px sans-serif; text-anchor: middle; fill: #1a1a1a }\n"
    "text.key, text.name { text-anchor: start }\n"
    "text.name { font-size: 15px; font-weight: bold }\n"
    "text.count { paint-order: stroke; stroke: #ffffff; stroke-width: 5px }\n"
    "rect { fill: #f2f2f2; stroke: #555 }\n"
    ".host rect { fill: #ffffff }\n"
    ".nvswitch rect { fill: #e6f2dc }\n"
    ".leaf rect { fill: #dcecf7 }\n"
    ".spine rect, .core rect { fill: #fbe9d9 }\n"
    ".link { stroke: #8a8a8a; fill: none }\n"
    ".tree { stroke-width: 2; fill: none; stroke-opacity: 0.85 }\n"
    ".crowd .tree { stroke-width: 1.2; stroke-opacity: 0.9 } .crowd .link { stroke: #c8c8c8 }\n"
    ".background { fill: #ffffff; stroke: none }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  text { fill: #e8e8e8 } text.count { stroke: #16181c } .background { fill: #16181c } .link { "
    "stroke: #8f949c }\n"
    "  rect { fill: #3a3d42; stroke: #b5b5b5 } .host rect { fill: #24272c }\n"
    "  .nvswitch rect { fill: #2f4423 } .leaf rect { fill: #1f3a4d }\n"
    "  .spine rect, .core rect { fill: #4d3520 }\n"
    "}\n"
    "</style>\n";

int plan_svg(const struct fabric *f, bool with_trees, FILE *out)
{
    struct drawing *d = drawing_new(f);
    double top = 40, y, width, height;
    unsigned trees[TREES], n;

    if (!d)
        return -1;
    n = with_trees ? plan_svg_choose(f, d, trees) : 0;
    width = d->width < 480 ? 480 : d->width;
    y = top + d->height + CAPTION;
    height = y + (plan_svg_rates(f, d, 0, NULL) + n) * CAPTION;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\" role=\"img\" aria-label=\"The fabric %s: %u hosts, %u switches, %u "
            "links\">\n%s",
            width, height, width, height, f->name, f->n_hosts, f->n_switches, f->n_links, style);
    fputs("<style>", out);
    for (unsigned k = 0; k < DRAWING_RATES; k++)
        fprintf(out, ".r%u { stroke-dasharray: %s }%s", k, dashes[k],
                k + 1 < DRAWING_RATES ? " " : "");
    fputs("</style>\n", out);
    fprintf(out, "<rect class=\"background\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
    fprintf(out,
            "<text class=\"name\" x=\"24\" y=\"28\">%s</text>\n<g transform=\"translate(%.1f "
            "%.1f)\"%s>\n",
            f->name, (width - d->width) / 2, top, d->n_lines > CROWD ? " class=\"crowd\"" : "");
    lines(f, d, out);
    for (unsigned k = 0; k < n; k++)
        tree(f, d, trees[k], k, out);
    counts_print(f, d, out);
    boxes(f, d, out);
    fputs("</g>\n", out);
    tree_keys(f, trees, n, y + plan_svg_rates(f, d, y, out) * CAPTION, out);
    fputs("</svg>\n", out);
    drawing_free(d);
    return 0;
}

/* ---- Graphviz ---- */

static void dot_tree(const struct fabric *f, const struct drawing *d, const struct fab_tree *t,
                     const char *colour, FILE *out)
{
    const fab_id *parent = fabric_tree_parents(f, t);

    for (unsigned i = 0; i < f->n_nodes; i++) {
        fab_id up = parent[i];

        if (up == FAB_NONE || f->nodes[i].kind == FAB_HOST || d->box_of[i] == d->box_of[up])
            continue;
        fprintf(out, "  \"%s\" -- \"%s\" [color=\"%s\", constraint=false, tooltip=\"tree %u\"];\n",
                f->nodes[d->box[d->box_of[up]].node].name, f->nodes[d->box[d->box_of[i]].node].name,
                colour, t->id);
    }
}

int plan_dot(const struct fabric *f, FILE *out)
{
    struct drawing *d = drawing_new(f);
    unsigned trees[TREES], n;
    char rate[32];

    if (!d)
        return -1;
    fprintf(out, "graph \"%s\" {\n  rankdir=TB; node [shape=box, fontname=\"sans-serif\"];\n",
            f->name);
    for (unsigned r = 0; r < 8; r++) {
        fputs("  { rank=same;", out);
        for (unsigned i = 0; i < d->n_boxes; i++)
            if (d->box[i].row == r)
                fprintf(out, " \"%s\" [label=\"%s\"];", f->nodes[d->box[i].node].name,
                        d->box[i].label);
        fputs(" }\n", out);
    }
    for (unsigned i = 0; i < d->n_lines; i++) {
        const struct drawing_line *l = &d->line[i];
        bool upside = d->box[l->a].row > d->box[l->b].row; /* Graphviz ranks by direction */
        const struct drawing_box *from = &d->box[upside ? l->b : l->a],
                                 *to = &d->box[upside ? l->a : l->b];

        fprintf(out, "  \"%s\" -- \"%s\" [penwidth=%.1f, tooltip=\"%s, %u links, %s\"];\n",
                f->nodes[from->node].name, f->nodes[to->node].name, width_of(l->rate_bps),
                f->links[l->link].name, l->links, plan_rate(l->rate_bps, rate, sizeof(rate)));
    }
    n = plan_svg_choose(f, d, trees);
    for (unsigned k = 0; k < n; k++)
        dot_tree(f, d, &f->trees[trees[k]], colours[k], out);
    fputs("}\n", out);
    drawing_free(d);
    return 0;
}
