/* SPDX-License-Identifier: BSD-3-Clause */
/* `trib plan --svg` and `--dot`: nothing is missing, nothing overlaps, nothing is out of the picture. */
#include "fabric/report/drawing.h"
#include "fabric/report/plan.h"
#include "tests/fabric/load.h"

#include <glob.h>
#include <stdlib.h>

static const char *const confs[] = {
    "conf/leaf-spine-8.conf", "conf/leaf-spine-64.conf",
    "conf/h100-node.conf",    "conf/rail-2x4.conf",
    "conf/h100-su.conf",      "conf/single-switch-4.conf",
    "conf/npu-mesh-8.conf",   "conf/h100-superpod-1024.conf",
    "conf/two-hosts.conf",    THREE_TIER,
};

static void every_node_and_link_is_in_it(void **state)
{
    (void)state;
    for (unsigned c = 0; c < LEN(confs); c++) {
        struct fabric *f = load_file(confs[c]);
        struct drawing *d = drawing_new(f);
        unsigned nodes = 0, links = 0, inside = 0;
        uint64_t rate = 0, want = 0;

        for (unsigned b = 0; b < d->n_boxes; b++)
            nodes += d->box[b].hosts + d->box[b].nvswitches + d->box[b].others;
        for (unsigned l = 0; l < d->n_lines; l++) {
            links += d->line[l].links;
            rate += d->line[l].rate_bps;
        }
        for (unsigned l = 0; l < f->n_links; l++)
            if (d->box_of[f->links[l].a] == d->box_of[f->links[l].b])
                inside++;
            else
                want += f->links[l].rate_bps;
        assert_int_equal(nodes, f->n_nodes);
        assert_int_equal(links + inside, f->n_links);
        assert_true(rate == want);
        if (f->n_hosts <= 32)
            assert_int_equal(d->n_boxes, f->n_nodes);
        drawing_free(d);
        fabric_free(f);
    }
}

static void boxes_do_not_overlap(void **state)
{
    (void)state;
    for (unsigned c = 0; c < LEN(confs); c++) {
        struct fabric *f = load_file(confs[c]);
        struct drawing *d = drawing_new(f);

        for (unsigned i = 0; i < d->n_boxes; i++) {
            const struct drawing_box *a = &d->box[i];

            assert_true(a->x - a->width / 2 >= 0 && a->x + a->width / 2 <= d->width);
            assert_true(a->y >= 0 && a->y + DRAWING_BOX_HEIGHT <= d->height);
            for (unsigned j = i + 1; j < d->n_boxes; j++) {
                const struct drawing_box *b = &d->box[j];
                double apart = a->x < b->x ? b->x - a->x : a->x - b->x;

                if (a->row == b->row && apart < (a->width + b->width) / 2)
                    fail_msg("%s: %s and %s overlap", confs[c], a->label, b->label);
                if (a->row != b->row && a->y == b->y)
                    fail_msg("%s: two rows in one place", confs[c]);
            }
        }
        drawing_free(d);
        fabric_free(f);
    }
}

static char *printed(const struct fabric *f, int (*print)(const struct fabric *f, FILE *out))
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_int_equal(print(f, out), 0);
    fclose(out);
    return text;
}

static unsigned times(const char *text, const char *what)
{
    unsigned n = 0;

    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static int with_trees(const struct fabric *f, FILE *out)
{
    return plan_svg(f, true, out);
}

static int without_trees(const struct fabric *f, FILE *out)
{
    return plan_svg(f, false, out);
}

/* 32 nodes of 8 GPUs at the same eight leaves: one box, and the three rates of links apart. */
static void nodes_that_are_wired_alike_are_one_box(void **state)
{
    struct fabric *f = load_file("conf/h100-su.conf");
    char *svg = printed(f, with_trees), *bare = printed(f, without_trees);

    (void)state;
    assert_int_equal(times(svg, "data-node="), 1 + 8 + 4);
    assert_int_equal(times(svg, "data-link="), 8 + 8 * 4);
    assert_non_null(strstr(svg, ">n0g0 ...: 32 nodes, 256 GPUs<"));
    assert_int_equal(times(bare, "<path class=\"tree\""), 0);
    assert_int_equal(times(bare, "data-link="), 8 + 8 * 4);
    for (unsigned k = 0; k < 3; k++) {
        char key[40];

        snprintf(key, sizeof(key), "<path class=\"link r%u\"", k);
        assert_non_null(strstr(svg, key));
    }
    free(svg);
    free(bare);
    fabric_free(f);
}

/* Eight racks of 72 GPUs, GPU i at leaf i mod 18: leaves, and spines, have the same neighbours, and
 * a tree has a line for each rack, not for * each GPU. */
static void a_tree_has_a_line_for_two_boxes(void **state)
{
    struct fabric *f = load_file("conf/gb200-superpod-576.conf");
    char *svg = printed(f, with_trees);

    (void)state;
    assert_int_equal(times(svg, "data-node="), 8 + 1 + 1);
    assert_int_equal(times(svg, "<path class=\"tree\""), 8 * (8 + 1) + 8);
    assert_non_null(strstr(svg, ">leaf0 ...: 18 leaves<"));
    assert_int_equal(times(svg, ">72&#215;400Gb/s<"), 8);
    assert_non_null(strstr(svg, ">576&#215;400Gb/s<"));
    assert_int_equal(times(svg, " data-links="), 8 + 1);
    assert_non_null(strstr(svg, " n0g1:18-leaf1:0 "));
    free(svg);
    fabric_free(f);
}

/* Four pods are four columns, with one box of each tier. */
static void pods_that_are_alike_are_columns(void **state)
{
    struct fabric *f = load_file("conf/h100-superpod-4096.conf");
    char *svg = printed(f, with_trees);

    (void)state;
    assert_int_equal(times(svg, "data-node="), 4 + 4 + 4 + 1);
    assert_int_equal(times(svg, "data-link="), 4 + 4 + 4);
    assert_non_null(strstr(svg, ">n128g0 ...: 128 nodes, 1024 GPUs<"));
    assert_non_null(strstr(svg, ">spine32 ...: 32 spines<"));
    free(svg);
    fabric_free(f);
}

/* However many and however irregular: leaf i has i mod 7 + 1 hosts, so that no pod is like another one. */
static void every_picture_is_narrow_enough(void **state)
{
    static const char links[] = "link_defaults = { rate = \"1Gb/s\"; latency = \"1us\"; };\nnodes "
                                "= ( { name = \"s\"; role = \"spine\"; }";
    glob_t g;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct drawing *d;
    struct fabric *f;

    (void)state;
    fprintf(out, "%s", links);
    for (unsigned i = 0; i < 200; i++) {
        fprintf(out, ", { name = \"l%u\"; role = \"leaf\"; }", i);
        for (unsigned h = 0; h <= i % 7; h++)
            fprintf(out, ", { name = \"h%u.%u\"; kind = \"host\"; }", i, h);
    }
    fprintf(out, " );\nlinks = ( { a = \"s\"; b = \"l0\"; }");
    for (unsigned i = 0; i < 200; i++) {
        if (i)
            fprintf(out, ", { a = \"s\"; b = \"l%u\"; }", i);
        for (unsigned h = 0; h <= i % 7; h++)
            fprintf(out, ", { a = \"l%u\"; b = \"h%u.%u\"; }", i, i, h);
    }
    fprintf(out, " );\n");
    fclose(out);
    f = fabric_load_string(text, "irregular", NULL);
    assert_non_null(f);
    d = drawing_new(f);
    assert_true(d->width <= DRAWING_WIDTH && d->n_lines <= DRAWING_LINES && d->n_boxes > 3);
    drawing_free(d);
    fabric_free(f);
    free(text);
    assert_int_equal(glob("conf/*.conf", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        f = load_file(g.gl_pathv[i]);
        d = drawing_new(f);
        if (d->width > DRAWING_WIDTH || d->n_lines > DRAWING_LINES)
            fail_msg("%s: %.0f px, %u lines", g.gl_pathv[i], d->width, d->n_lines);
        drawing_free(d);
        fabric_free(f);
    }
    globfree(&g);
}

static void pictures_have_nodes_links_and_trees(void **state)
{
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    char *svg = printed(f, with_trees), *dot = printed(f, plan_dot);

    (void)state;
    assert_int_equal(times(svg, "data-node="), 12);
    assert_int_equal(times(svg, "data-link="), 12);
    assert_int_equal(times(svg, "<path class=\"tree\""), 2 * 10 + 2); /* edges, and the keys */
    assert_non_null(strstr(svg, ">400Gb/s, 300ns: 12 links<"));
    assert_non_null(strstr(svg, "aggregation tree 1, root spine1<"));
    assert_non_null(strstr(svg, "data-link=\"leaf0:4-spine0:0\""));
    assert_int_equal(times(dot, "penwidth="), 12);
    assert_int_equal(times(dot, "\"spine0\" -- \"leaf0\""), 2); /* a link, and tree 0 */
    free(svg);
    free(dot);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_and_link_is_in_it),
        cmocka_unit_test(boxes_do_not_overlap),
        cmocka_unit_test(nodes_that_are_wired_alike_are_one_box),
        cmocka_unit_test(a_tree_has_a_line_for_two_boxes),
        cmocka_unit_test(pods_that_are_alike_are_columns),
        cmocka_unit_test(every_picture_is_narrow_enough),
        cmocka_unit_test(pictures_have_nodes_links_and_trees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
