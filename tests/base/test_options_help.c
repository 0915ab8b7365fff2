/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole of --help, the manual page and the lines for completion, of tables that have everything; and
 * what options_begin() makes of a command line. */
#include "base/options.h"
#include "base/version.h"
#include "tests/support/captured.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct values {
    unsigned n, colour;
    bool on;
    const char *conf, *out;
};

static const char *colour(unsigned i)
{
    static const char *const names[] = {"red", "", "blue"};

    return i < LEN(names) ? names[i] : NULL;
}

#define AT(f) .offset = offsetof(struct values, f)
static const struct option_row first[] = {
    {.c = 'n', .name = "iters", .arg = "N", AT(n), .type = OPTION_UINT, .help = "how often"},
    {.name = "of-nineteen-letters", .arg = "XY", AT(out), .type = OPTION_TEXT, .help = "30 wide"},
    {.name = "of-twenty-letters-aa", .arg = "XY", AT(out), .type = OPTION_TEXT, .help = "31"},
    {.c = 'x', .name = "hidden", .how = OPTION_HIDDEN, AT(on), .help = "for scripts"},
};
static const struct option_row second[] = {
    {.c = 'b',
     .name = "colour",
     .also = "color",
     .arg = "C",
     AT(colour),
     .type = OPTION_CHOICE,
     .list = colour,
     .initial = "blue",
     .help = "of it"},
    {.name = "marks", .arg = "LIST", AT(n), .type = OPTION_SET, .list = colour, .help = "some"},
    {.name = "cores", .arg = "N", AT(n), .type = OPTION_UINT, .shown = "all", .help = "to use"},
    {.name = "gone", AT(on), .instead = "trib x", .help = "an old one"},
    {.name = "long", /* 68 characters, the width of the right column; then one more word */
     AT(on),
     .help = "123456789 123456789 123456789 123456789 123456789 123456789 12345678 x"},
};
static const struct option_group groups[] = {
    {"First", first, LEN(first)}, {"Second", second, LEN(second)}, {NULL, NULL, 0}};
static const struct option_row words[] = {
    {.arg = "CONF", AT(conf), .type = OPTION_TEXT, .how = OPTION_REQUIRED, .help = "a conf file"},
    {.arg = "SECRET", AT(out), .type = OPTION_TEXT, .how = OPTION_HIDDEN, .help = "a word"},
};
static const struct option_note exits[] = {{"0", "fine"}, {"2", "not - so"}, {NULL, NULL}};
static const struct option_note environment[] = {{"TRIB_X", ".dot"}, {NULL, NULL}};
static const struct option_program program = {
    .name = "trib-test",
    .summary = "try\\it",
    .synopsis = "[OPTION...] CONF\n--list",
    .text = "One two.\n\n.Dot 'q'\n'quote at the start of a line, and words until column one "
            "hundred is "
            "reached by all of them.",
    .words = words,
    .n_words = LEN(words),
    .groups = groups,
    .exits = exits,
    .environment = environment,
    .see = "trib(1)",
};
/* Without anything that a program may leave out, and with another one's rows. */
static const struct option_default defaults[] = {
    {"iters", "5", false}, {"cores", NULL, true}, {"colour", "red", false}, {NULL, NULL, false}};
static const struct option_group none[] = {{NULL, NULL, 0}};
static const struct option_program plain = {
    .name = "t",
    .summary = "do",
    .synopsis = "CONF",
    .groups = none,
    .base = &program,
    .defaults = defaults,
};

static const char *printed(void (*print)(const struct option_program *, FILE *),
                           const struct option_program *p)
{
    FILE *f = captured_file();

    print(p, f);
    return captured_text(f);
}

static void help_is_in_two_columns(void **state)
{
    static const char want[] =
        "Usage: trib-test [OPTION...] CONF\n"
        "       trib-test --list\n"
        "Try\\it.\n"
        "\n"
        "One two.\n"
        "\n"
        ".Dot 'q' 'quote at the start of a line, and words until column one hundred is reached by "
        "all "
        "of\n"
        "them.\n"
        "\n"
        "Arguments:\n"
        "  CONF                          a conf file\n"
        "\n"
        "First:\n"
        "  -n, --iters N                 how often\n"
        "      --of-nineteen-letters XY  30 wide\n"
        "      --of-twenty-letters-aa XY\n"
        "                                31\n"
        "\n"
        "Second:\n"
        "  -b, --colour, --color C       of it: red, blue (default: blue)\n"
        "      --marks LIST              some: red, blue\n"
        "      --cores N                 to use (default: all)\n"
        "      --gone                    an old one; deprecated: use trib x\n"
        "      --long                    123456789 123456789 123456789 123456789 123456789 "
        "123456789 "
        "12345678\n"
        "                                x\n"
        "\n"
        "General:\n"
        "  -h, --help                    print this text\n"
        "      --version                 print the version\n"
        "\n"
        "Exit status:\n"
        "  0                             fine\n"
        "  2                             not - so\n"
        "\n"
        "Environment:\n"
        "  TRIB_X                        .dot\n";

    (void)state;
    assert_string_equal(printed(options_help, &program), want);
}

static void help_of_a_program_with_a_base_has_its_defaults(void **state)
{
    static const char want[] =
        "Usage: t CONF\n"
        "Do.\n"
        "\n"
        "\n"
        "Arguments:\n"
        "  CONF                          a conf file\n"
        "\n"
        "First:\n"
        "  -n, --iters N                 how often (default: 5)\n"
        "      --of-nineteen-letters XY  30 wide\n"
        "      --of-twenty-letters-aa XY\n"
        "                                31\n"
        "\n"
        "Second:\n"
        "  -b, --colour, --color C       of it: red, blue (default: red)\n"
        "      --marks LIST              some: red, blue\n"
        "      --gone                    an old one; deprecated: use trib x\n"
        "      --long                    123456789 123456789 123456789 123456789 123456789 "
        "123456789 "
        "12345678\n"
        "                                x\n"
        "\n"
        "General:\n"
        "  -h, --help                    print this text\n"
        "      --version                 print the version\n";

    (void)state;
    assert_string_equal(printed(options_help, &plain), want);
}

static const char manual[] =
    ".TH TRIB-TEST 1 \"\" \"Tributary " TRIB_VERSION "\" \"Tributary manual\"\n"
    ".SH NAME\n"
    "trib\\-test \\- try\\eit\n"
    ".SH SYNOPSIS\n"
    "\\fBtrib\\-test\\fR [OPTION...] CONF\n"
    ".br\n"
    "\\fBtrib\\-test\\fR \\-\\-list\n"
    ".SH DESCRIPTION\n"
    ".PP\n"
    "One two.\n"
    ".PP\n"
    "\\&.Dot 'q'\n"
    "\\&'quote at the start of a line, and words until column one hundred is reached by all of "
    "them.\n"
    ".SH ARGUMENTS\n"
    ".TP\n"
    "\\fICONF\\fR\n"
    "a conf file.\n"
    ".SH OPTIONS\n"
    ".SS First\n"
    ".TP\n"
    "\\fB\\-n\\fR, \\fB\\-\\-iters\\fR \\fIN\\fR\n"
    "how often.\n"
    ".TP\n"
    "\\fB\\-\\-of\\-nineteen\\-letters\\fR \\fIXY\\fR\n"
    "30 wide.\n"
    ".TP\n"
    "\\fB\\-\\-of\\-twenty\\-letters\\-aa\\fR \\fIXY\\fR\n"
    "31.\n"
    ".SS Second\n"
    ".TP\n"
    "\\fB\\-b\\fR, \\fB\\-\\-colour\\fR, \\fB\\-\\-color\\fR \\fIC\\fR\n"
    "of it: red, blue (default: blue).\n"
    ".TP\n"
    "\\fB\\-\\-marks\\fR \\fILIST\\fR\n"
    "some: red, blue.\n"
    ".TP\n"
    "\\fB\\-\\-cores\\fR \\fIN\\fR\n"
    "to use (default: all).\n"
    ".TP\n"
    "\\fB\\-\\-gone\\fR\n"
    "an old one; deprecated: use trib x.\n"
    ".TP\n"
    "\\fB\\-\\-long\\fR\n"
    "123456789 123456789 123456789 123456789 123456789 123456789 12345678 x.\n"
    ".SS General\n"
    ".TP\n"
    "\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n"
    "print this text.\n"
    ".TP\n"
    "\\fB\\-\\-version\\fR\n"
    "print the version.\n"
    ".SH EXIT STATUS\n"
    ".TP\n"
    "\\fB0\\fR\n"
    "fine.\n"
    ".TP\n"
    "\\fB2\\fR\n"
    "not \\- so.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n"
    "\\fBTRIB_X\\fR\n"
    "\\&.dot.\n"
    ".SH SEE ALSO\n"
    "trib(1)\n";
static const char plain_manual[] =
    ".TH T 1 \"\" \"Tributary " TRIB_VERSION "\" \"Tributary manual\"\n"
    ".SH NAME\n"
    "t \\- do\n"
    ".SH SYNOPSIS\n"
    "\\fBt\\fR CONF\n"
    ".SH DESCRIPTION\n"
    ".SH ARGUMENTS\n"
    ".TP\n"
    "\\fICONF\\fR\n"
    "a conf file.\n"
    ".SH OPTIONS\n"
    ".SS First\n"
    ".TP\n"
    "\\fB\\-n\\fR, \\fB\\-\\-iters\\fR \\fIN\\fR\n"
    "how often (default: 5).\n";

static void the_manual_page_is_escaped(void **state)
{
    (void)state;
    assert_string_equal(printed(options_man, &program), manual);
    assert_memory_equal(printed(options_man, &plain), plain_manual, strlen(plain_manual));
    assert_null(strstr(printed(options_man, &plain), "EXIT"));
    assert_null(strstr(printed(options_man, &plain), "SEE"));
}

static void completion_has_a_line_for_each_spelling(void **state)
{
    static const char want[] =
        "\t\tCONF\t\ta conf file\n"
        "--iters\t-n\tN\t\thow often\n"
        "--of-nineteen-letters\t\tXY\t\t30 wide\n"
        "--of-twenty-letters-aa\t\tXY\t\t31\n"
        "--colour\t-b\tC\tred blue\tof it\n"
        "--color\t-b\tC\tred blue\tof it\n"
        "--marks\t\tLIST\tred blue all\tsome\n"
        "--cores\t\tN\t\tto use\n"
        "--gone\t\t\t\tan old one\n"
        "--long\t\t\t\t123456789 123456789 123456789 123456789 123456789 123456789 12345678 x\n"
        "--help\t-h\t\t\tprint this text\n"
        "--version\t\t\t\tprint the version\n";

    (void)state;
    assert_string_equal(printed(options_complete, &program), want);
}

/* What a command line prints on both, its exit status (-1: it runs). */
static int begun(const char *arg, const char *more, const char **out, const char **err)
{
    static struct captured o, e;
    char *argv[] = {(char *)(uintptr_t) "trib-test", (char *)(uintptr_t)arg,
                    (char *)(uintptr_t)more};
    struct option_result r;
    struct values v = {0};
    int code = -2;
    bool runs;

    captured_begin(&o, stdout);
    captured_begin(&e, stderr);
    runs = options_begin(&program, (void *[]){&v}, more ? 3 : 2, argv, &r, &code);
    *err = captured_end(&e);
    *out = captured_end(&o);
    assert_true(!runs || !code);
    return runs ? -1 : code;
}

static void a_program_runs_or_ends_with_a_status(void **state)
{
    const char *out, *err;

    (void)state;
    assert_int_equal(begun("x.conf", NULL, &out, &err), -1);
    assert_string_equal(out, "");
    assert_string_equal(err, "");
    assert_int_equal(begun("x.conf", "--gone", &out, &err), -1);
    assert_string_equal(out, "");
    assert_string_equal(err, "trib-test: --gone is deprecated and goes with the next release; use "
                             "trib x\n");
    assert_int_equal(begun("--version", NULL, &out, &err), 0);
    assert_string_equal(out, "trib-test (Tributary) " TRIB_VERSION "\n");
    assert_string_equal(err, "");
    assert_int_equal(begun("-h", NULL, &out, &err), 0);
    assert_string_equal(out, printed(options_help, &program));
    assert_int_equal(begun("--help=man", NULL, &out, &err), 0);
    assert_string_equal(out, printed(options_man, &program));
    assert_int_equal(begun("--help=complete", NULL, &out, &err), 0);
    assert_string_equal(out, printed(options_complete, &program));
    assert_int_equal(begun("-z", NULL, &out, &err), 2);
    assert_string_equal(out, "");
    assert_string_equal(err, "trib-test: found -z, expected an option of trib-test\n"
                             "trib-test -h shows all options\n");
}

static void a_full_disk_ends_help_with_1(void **state)
{
    char *argv[] = {(char *)(uintptr_t) "trib-test", (char *)(uintptr_t) "--version"};
    int full = open("/dev/full", O_WRONLY), was = dup(STDOUT_FILENO), code = 0;
    struct option_result r;
    struct values v = {0};
    struct captured e;

    (void)state;
    fflush(stdout);
    assert_true(dup2(full, STDOUT_FILENO) >= 0);
    captured_begin(&e, stderr);
    assert_false(options_begin(&program, (void *[]){&v}, 2, argv, &r, &code));
    dup2(was, STDOUT_FILENO);
    clearerr(stdout);
    close(was);
    close(full);
    assert_int_equal(code, 1);
    assert_string_equal(captured_end(&e), "trib-test: cannot write to standard output: No space "
                                          "left on device\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_is_in_two_columns),
        cmocka_unit_test(help_of_a_program_with_a_base_has_its_defaults),
        cmocka_unit_test(the_manual_page_is_escaped),
        cmocka_unit_test(completion_has_a_line_for_each_spelling),
        cmocka_unit_test(a_program_runs_or_ends_with_a_status),
        cmocka_unit_test(a_full_disk_ends_help_with_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
