/* SPDX-License-Identifier: BSD-3-Clause */
/* The option parser: every spelling, every type, every mistake, and the texts printed from a
 * table. */
#include "base/options.h"
#include "base/version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a)   (sizeof(a) / sizeof((a)[0]))
#define MAX_ARGS 32

struct values {
    const char *conf, *out;
    bool verbose, quiet;
    unsigned n, colour, marks;
    struct option_order order;
    uint64_t seed, bytes, bps;
    int64_t wait_ps;
    double wall_s, loss;
    int own;
};

static const char *colour(unsigned i)
{
    static const char *const names[] = {"red", "green", "blue"};

    return i < LEN(names) ? names[i] : NULL;
}

static int take_even(void *into, const struct option_row *r, const char *label, const char *value,
                     char *err)
{
    struct values *v = into;

    (void)r;
    v->own = atoi(value);
    if (!(v->own & 1))
        return 0;
    snprintf(err, OPTIONS_ERR, "%s: found \"%s\", expected an even number", label, value);
    return -1;
}

#define AT(f) .offset = offsetof(struct values, f)
static const struct option_row first[] = {
    {.c = 'n',
     .name = "iters",
     .arg = "N",
     AT(n),
     .type = OPTION_UINT,
     .min = 1,
     .max = 9,
     .initial = "3",
     .help = "how often"},
    {.c = 'v', .name = "verbose", AT(verbose), .help = "say more"},
    {.c = 'q', .name = "quiet", AT(quiet), .help = "say less"},
    {.c = 'b',
     .name = "bytes",
     .also = "size",
     .arg = "SIZE",
     AT(bytes),
     .type = OPTION_SIZE,
     .min = 2,
     .max = 1 << 20,
     .help = "how much"},
    {.name = "seed", .old = "number", .arg = "N", AT(seed), .type = OPTION_U64, .help = "of draws"},
};
static const struct option_row second[] = {
    {.name = "wait", .arg = "TIME", AT(wait_ps), .type = OPTION_TIME, .help = "before"},
    {.name = "max-wall",
     .arg = "SECONDS",
     AT(wall_s),
     .type = OPTION_SECONDS,
     .min = 1,
     .max = 100000000,
     .help = "at most"},
    {.name = "rate", .arg = "RATE", AT(bps), .type = OPTION_RATE, .help = "of a link"},
    {.name = "loss", .arg = "P", AT(loss), .type = OPTION_PROBABILITY, .help = "of frames"},
    {.c = 'o', .name = "output", .arg = "FILE", AT(out), .type = OPTION_TEXT, .help = "results"},
    {.name = "colour",
     .arg = "NAME",
     AT(colour),
     .type = OPTION_CHOICE,
     .list = colour,
     .initial = "green",
     .help = "of all"},
    {.name = "marks",
     .arg = "LIST",
     AT(marks),
     .order = offsetof(struct values, order),
     .type = OPTION_SET,
     .list = colour,
     .help = "some"},
    {.name = "even", .arg = "N", .type = OPTION_CALL, .take = take_even, .help = "an even one"},
    {.name = "secret", AT(quiet), .how = OPTION_HIDDEN, .help = "for scripts"},
    {.name = "gone",
     .arg = "X",
     AT(out),
     .type = OPTION_TEXT,
     .instead = "trib other",
     .help = "an old one"},
};
static const struct option_row words[] = {
    {.arg = "CONF", AT(conf), .type = OPTION_TEXT, .how = OPTION_REQUIRED, .help = "a conf file"},
    {.arg = "COLOUR", AT(colour), .type = OPTION_CHOICE, .list = colour, .help = "one of these"},
};
static const struct option_group groups[] = {
    {"First", first, LEN(first)}, {"Second", second, LEN(second)}, {NULL, NULL, 0}};
static const struct option_note exits[] = {{"0", "fine"}, {NULL, NULL}};
static const struct option_program program = {
    .name = "trib-test",
    .summary = "try the option parser",
    .synopsis = "[OPTION...] CONF [COLOUR]",
    .text = "A paragraph.\n\n.Another one with a dot.",
    .words = words,
    .n_words = LEN(words),
    .groups = groups,
    .exits = exits,
};

static int parse_as(const struct option_program *p, const char *line, void *const *into,
                    struct option_result *r)
{
    static char buf[256];
    char *argv[MAX_ARGS] = {(char *)(uintptr_t) "trib-test"}, *save = NULL;
    int argc = 1;

    snprintf(buf, sizeof(buf), "%s", line);
    for (char *s = strtok_r(buf, " ", &save); s && argc < MAX_ARGS; s = strtok_r(NULL, " ", &save))
        argv[argc++] = s;
    return options_parse(p, into, argc, argv, r);
}

static int parse(const char *line, struct values *v, struct option_result *r)
{
    *v = (struct values){.conf = NULL};
    return parse_as(&program, line, (void *[]){v}, r);
}

static void every_spelling_is_taken(void **state)
{
    static const char *const rows[] = {
        "c.conf -n 7 -v -b 4K",
        "c.conf -n7 -vb4K",
        "--iters=7 --verbose --bytes=4K c.conf",
        "--iters 7 c.conf --size 4096 -v",
        "--it 7 --verb --by 4K -- c.conf",
        "-vn7 c.conf -b4096",
    };
    struct option_result r;
    struct values v;

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        if (parse(rows[i], &v, &r))
            fail_msg("%s: %s", rows[i], r.err);
        assert_string_equal(v.conf, "c.conf");
        assert_int_equal(v.n, 7);
        assert_int_equal(v.bytes, 4096);
        assert_true(v.verbose);
        assert_false(v.quiet);
        assert_int_equal(v.colour, 1); /* the default */
        assert_true(options_given(&program, &r, "iters") && options_given(&program, &r, "bytes") &&
                    options_given(&program, &r, "verbose"));
        assert_false(options_given(&program, &r, "quiet") || options_given(&program, &r, "none"));
    }
}

static void every_type_is_read(void **state)
{
    struct option_result r;
    struct values v;

    (void)state;
    assert_int_equal(parse("--wait 300ns --max-wall 0.5 --rate 50GB/s --loss 0.1% -o x --marks "
                           "red,blue --even 4 --seed 18446744073709551615 -- -c blue",
                           &v, &r),
                     0);
    assert_int_equal(v.wait_ps, 300000);
    assert_true(v.wall_s == 0.5);
    assert_int_equal(v.bps, 400000000000);
    assert_true(v.loss == 0.001);
    assert_string_equal(v.out, "x");
    assert_int_equal(v.marks, 5);
    assert_int_equal(v.own, 4);
    assert_true(v.seed == UINT64_MAX);
    assert_string_equal(v.conf, "-c");
    assert_int_equal(v.colour, 2);
    assert_int_equal(v.n, 3);
    assert_int_equal(parse("c --marks all --max-wall 500ms", &v, &r), 0);
    assert_int_equal(v.marks, 7);
    assert_true(v.wall_s > 0.499 && v.wall_s < 0.501);
}

static void a_set_keeps_the_order_in_which_it_is_given(void **state)
{
    struct option_result r;
    struct values v;
    uint8_t list[OPTION_SET_MAX];

    (void)state;
    assert_int_equal(parse("c --marks blue,red,blue", &v, &r), 0);
    assert_int_equal(v.order.n, 2);
    assert_int_equal(v.order.at[0], 2);
    assert_int_equal(v.order.at[1], 0);
    /* of what is there, and what is there beside it */
    assert_int_equal(options_ordered(&v.order, 7, list), 3);
    assert_memory_equal(list, "\2\0\1", 3);
    assert_int_equal(options_ordered(&v.order, 1u << 31 | 3, list), 3);
    assert_memory_equal(list, "\0\1\37", 3);
    assert_int_equal(parse("c --marks blue,red --marks all", &v, &r), 0);
    assert_int_equal(v.order.n, 0);
    assert_int_equal(parse("c --marks blue,red --marks green", &v, &r), 0);
    assert_int_equal(v.order.n, 1);
    assert_int_equal(v.order.at[0], 1);
}

/* Each with the whole sentence, or its beginning. */
static void mistakes_name_what_was_found_and_expected(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"", "found no CONF, expected a conf file"},
        {"c --itres 7", "found --itres, expected an option of trib-test; did you mean --iters?"},
        {"c --itres=7", "found --itres, expected an option of trib-test; did you mean --iters?"},
        {"c --sise 7", "found --sise, expected an option of trib-test; did you mean --size?"},
        {"c -iters", "found -iters, expected an option of trib-test; did you mean --iters?"},
        {"c --nothing-like-it", "found --nothing-like-it, expected an option of trib-test"},
        {"c --secre", "found --secre, expected an option of trib-test"},
        {"c -z", "found -z, expected an option of trib-test"},
        {"c --", ""},
        {"c --ma 1",
         "found --ma, expected an option of trib-test: --max-wall and --marks begin so"},
        {"c -n", "-n: found nothing, expected N"},
        {"c -n 0", "-n: found \"0\", expected a whole number from 1 to 9"},
        {"c -n 10", "-n: found \"10\", expected a whole number from 1 to 9"},
        {"c -n -3", "-n: found \"-3\", expected a whole number"},
        {"c --iters=7x", "--iters: found \"7x\", expected a whole number"},
        {"c --seed 99999999999999999999", "--seed: found \"99999999999999999999\""},
        {"c --verbose=1", "--verbose: found \"1\", expected no value"},
        {"c --help=1", "--help: found \"1\", expected no value"},
        {"c --version=1", "--version: found \"1\", expected no value"},
        {"c -b 4Q", "-b: found \"4Q\", expected a size such as 4096"},
        {"c -b 1", "-b: found \"1\", expected a size"},
        {"c --size 2M", "--size: found \"2M\", expected a size"},
        {"c --wait 3", "--wait: found \"3\", expected a time such as 300ns"},
        {"c --max-wall never",
         "--max-wall: found \"never\", expected seconds, such as 0.5 or 500ms, up to 100"},
        {"c --max-wall 0", "--max-wall: found \"0\", expected seconds"},
        {"c --max-wall nan", "--max-wall: found \"nan\", expected seconds"},
        {"c --rate 4", "--rate: found \"4\", expected a rate such as 400Gb/s"},
        {"c --loss 2", "--loss: found \"2\", expected a probability such as"},
        {"c --output=", "--output: found nothing, expected FILE"},
        {"c --colour pink", "--colour: found \"pink\", expected one of red, green, blue"},
        {"c geen", "COLOUR: found \"geen\", expected one of red, green, blue; did you mean green?"},
        {"c red blue", "found \"blue\" after COLOUR, expected an option"},
        {"c --marks red,bleu", "--marks: found \"red,bleu\", expected all or a list of red, green, "
                               "blue; did you mean blue?"},
        {"c --marks ,", "--marks: found \",\", expected all or a list of"},
        {"c --even 3", "--even: found \"3\", expected an even number"},
    };
    struct option_result r;
    struct values v;

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        int rc = parse(rows[i].line, &v, &r);

        if (!*rows[i].says ? rc : !rc || strncmp(r.err, rows[i].says, strlen(rows[i].says)) != 0)
            fail_msg("\"%s\" said \"%s\", expected \"%s\"", rows[i].line, r.err, rows[i].says);
    }
    assert_int_not_equal(parse("c --nothing-like-it", &v, &r), 0);
    assert_null(strstr(r.err, "did you mean"));
    assert_int_not_equal(parse("c --pair", &v, &r), 0); /* half of --wait */
    assert_null(strstr(r.err, "did you mean"));
}

static void old_names_work_and_warn(void **state)
{
    static const struct {
        const char *line, *warns;
    } rows[] = {
        {"c --number 4", "--number is deprecated and goes with the next release; use --seed"},
        {"c --gone=4", "--gone is deprecated and goes with the next release; use trib other"},
        {"c --seed 4", ""},
    };
    struct option_result r;
    struct values v;

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(parse(rows[i].line, &v, &r), 0);
        assert_string_equal(r.warning, rows[i].warns);
    }
}

static void help_and_version_end_the_line(void **state)
{
    static const struct {
        const char *line;
        enum option_action action;
    } rows[] = {
        {"-h", OPTIONS_HELP},
        {"--help --bogus", OPTIONS_HELP},
        {"c -vh --bogus", OPTIONS_HELP},
        {"--version", OPTIONS_VERSION},
        {"--help=man", OPTIONS_MAN},
        {"--help=complete", OPTIONS_COMPLETE},
    };
    struct option_result r;
    struct values v;

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(parse(rows[i].line, &v, &r), 0);
        assert_int_equal(r.action, rows[i].action);
    }
}

/* More rows than a word has bits. */
static void options_are_given_beyond_the_sixty_fourth(void **state)
{
    static char names[100][8];
    static struct option_row many[100];
    const struct option_group some[] = {{"Some", many, LEN(many)}, {NULL, NULL, 0}};
    const struct option_program p = {
        .name = "trib-many", .summary = "x", .synopsis = "", .groups = some};
    static const char *const known[] = {"o63", "o64", NULL};
    struct option_result r;
    struct values v = {0};

    (void)state;
    for (unsigned i = 0; i < LEN(many); i++) {
        snprintf(names[i], sizeof(names[i]), "o%02u", i);
        many[i] = (struct option_row){.name = names[i], AT(verbose), .help = "x"};
    }
    assert_int_equal(parse_as(&p, "--o63 --o64", (void *[]){&v}, &r), 0);
    for (unsigned i = 0; i < LEN(many); i++)
        assert_int_equal(options_given(&p, &r, names[i]), i == 63 || i == 64);
    assert_null(options_given_other(&p, &r, known));
    assert_int_equal(parse_as(&p, "--o63 --o99 --o70", (void *[]){&v}, &r), 0);
    assert_string_equal(options_given_other(&p, &r, known)->name, "o70");
}

/* Options that a program inherits from another one, with a default of its own. */
static void a_base_is_taken_too(void **state)
{
    struct more {
        unsigned k;
    } m = {0};
    static const struct option_row rows[] = {
        {.c = 'k', .name = "many", .arg = "K", .type = OPTION_UINT, .max = 9, .help = "of them"}};
    static const struct option_group own[] = {{"Own", rows, 1}, {NULL, NULL, 0}};
    static const struct option_default defaults[] = {
        {"iters", "1", false}, {"wait", NULL, true}, {NULL, NULL, false}};
    static const struct option_program more = {
        .name = "trib-more",
        .summary = "try more",
        .synopsis = "CONF",
        .groups = own,
        .base = &program,
        .defaults = defaults,
    };
    static const char *const known[] = {"many", NULL};
    struct values v = {0};
    struct option_result r;

    (void)state;
    assert_int_equal(parse_as(&more, "c.conf -k 2 blue", (void *[]){&m, &v}, &r), 0);
    assert_int_equal(m.k, 2);
    assert_int_equal(v.n, 1);
    assert_int_equal(v.colour, 2);
    assert_string_equal(v.conf, "c.conf");
    assert_true(options_given(&more, &r, "many"));
    assert_false(options_given(&more, &r, "iters"));
    assert_null(options_given_other(&more, &r, known));
    assert_int_equal(parse_as(&more, "c.conf -k 2 -v", (void *[]){&m, &v}, &r), 0);
    assert_string_equal(options_given_other(&more, &r, known)->name, "verbose");
}

static void a_command_behind_the_words_is_left_alone(void **state)
{
    static const struct option_row run_words[] = {
        {.arg = "CONF", AT(conf), .type = OPTION_TEXT, .how = OPTION_REQUIRED, .help = "a conf"},
        {.arg = "CMD...",
         .type = OPTION_TEXT,
         .how = OPTION_REQUIRED | OPTION_REST,
         .help = "run"}};
    static const struct option_program run = {
        .name = "trib-run",
        .summary = "run",
        .synopsis = "CONF CMD...",
        .words = run_words,
        .n_words = 2,
        .words_end_options = true,
        .groups = groups,
    };
    struct option_result r;
    struct values v = {0};

    (void)state;
    assert_int_equal(parse_as(&run, "-v c.conf ls -l -- x", (void *[]){&v}, &r), 0);
    assert_int_equal(r.rest, 3);
    assert_true(v.verbose);
    v = (struct values){.conf = NULL};
    assert_int_equal(parse_as(&run, "c.conf -v", (void *[]){&v}, &r), 0);
    assert_int_equal(r.rest, 2);
    assert_false(v.verbose);
    assert_int_not_equal(parse_as(&run, "c.conf", (void *[]){&v}, &r), 0);
    assert_string_equal(r.err, "found no CMD..., expected run");
}

static void sizes_have_binary_and_decimal_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"1", 1},         {"4096", 4096},    {"4K", 4096},      {"4k", 4096},
        {"64KiB", 65536}, {"16M", 16 << 20}, {"1.5M", 3 << 19}, {"2G", 2ull << 30},
        {"4MB", 4000000}, {"10kB", 10000},   {"8B", 8},         {"1TiB", 1ull << 40},
    };
    static const char *const bad[] = {"",     "K",   "-1",   "4Q",    "4KX", "4 K",
                                      "0x10", "1.5", "1e99", "4KiBs", "nan"};
    uint64_t b;

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(options_size(rows[i].text, &b), 0);
        assert_int_equal(b, rows[i].bytes);
    }
    for (size_t i = 0; i < LEN(bad); i++)
        assert_true(options_size(bad[i], &b) < 0);
}

/* What print writes, in a buffer of its own. */
static const char *printed(void (*print)(const struct option_program *, FILE *))
{
    static char text[8192];
    FILE *f = fmemopen(text, sizeof(text), "w");

    print(&program, f);
    fclose(f);
    return text;
}

static void what_is_printed_has_every_row(void **state)
{
    static const char *const help[] = {
        "Usage: trib-test [OPTION...] CONF [COLOUR]\nTry the option parser.\n\nA paragraph.\n\n",
        "\nFirst:\n  -n, --iters N                 how often (default: 3)\n",
        "  -b, --bytes, --size SIZE      how much\n",
        "      --colour NAME             of all: red, green, blue (default: green)\n",
        "      --gone X                  an old one; deprecated: use trib other\n",
        "\nGeneral:\n  -h, --help                    print this text\n",
        "\nExit status:\n  0                             fine\n"};
    static const char *const man[] = {
        ".TH TRIB-TEST 1 \"\" \"Tributary " TRIB_VERSION "\"", ".PP\n\\&.Another one with a dot.\n",
        ".SS First\n.TP\n\\fB\\-n\\fR, \\fB\\-\\-iters\\fR \\fIN\\fR\nhow often (default: 3).\n"};
    static const char *const complete[] = {
        "--colour\t\tNAME\tred green blue\tof all\n", "--marks\t\tLIST\tred green blue all\tsome\n",
        "--verbose\t-v\t\t\tsay more\n", "--size\t-b\tSIZE\t\thow much\n",
        "\t\tCONF\t\ta conf file\n"};

    (void)state;
    for (size_t i = 0; i < LEN(help); i++)
        assert_non_null(strstr(printed(options_help), help[i]));
    for (size_t i = 0; i < LEN(man); i++)
        assert_non_null(strstr(printed(options_man), man[i]));
    for (size_t i = 0; i < LEN(complete); i++)
        assert_non_null(strstr(printed(options_complete), complete[i]));
    assert_null(strstr(printed(options_help), "secret"));
    assert_null(strstr(printed(options_complete), "secret"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_is_taken),
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(a_set_keeps_the_order_in_which_it_is_given),
        cmocka_unit_test(mistakes_name_what_was_found_and_expected),
        cmocka_unit_test(old_names_work_and_warn),
        cmocka_unit_test(help_and_version_end_the_line),
        cmocka_unit_test(options_are_given_beyond_the_sixty_fourth),
        cmocka_unit_test(a_base_is_taken_too),
        cmocka_unit_test(a_command_behind_the_words_is_left_alone),
        cmocka_unit_test(sizes_have_binary_and_decimal_units),
        cmocka_unit_test(what_is_printed_has_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
