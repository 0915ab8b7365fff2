/* SPDX-License-Identifier: BSD-3-Clause */
/* Which programs a preloaded clock reaches: small ELF files and scripts, found as execvp(3) finds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/sandbox/clock_reach.h"

#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char bits[] = "is not a 64-bit program, and the library is one",
                  go[] = "is a Go program, which asks the kernel for the time itself",
                  alone[] = "is linked statically, so no library can be loaded into it",
                  other[] = "runs as another user, so the loader preloads nothing";

static char dir[64], was_path[4096], was_cwd[4096];

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int make(void **state)
{
    (void)state;
    snprintf(was_path, sizeof(was_path), "%s", getenv("PATH") ? getenv("PATH") : "");
    snprintf(dir, sizeof(dir), "/tmp/tribreach.XXXXXX");
    umask(022);
    return mkdtemp(dir) && getcwd(was_cwd, sizeof(was_cwd)) && !chdir(dir) ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    setenv("PATH", was_path, 1);
    return chdir(was_cwd) || nftw(dir, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *name, const void *data, size_t n, mode_t mode)
{
    int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0700);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text), 0755);
}

/* A program of a head, `n` segments and room for notes behind them. */
struct image {
    Elf64_Ehdr head;
    Elf64_Phdr seg[3];
    char notes[8192];
};

static struct image *image(unsigned n)
{
    static struct image i;

    memset(&i, 0, sizeof(i));
    memcpy(i.head.e_ident, ELFMAG, SELFMAG);
    i.head.e_ident[EI_CLASS] = ELFCLASS64;
    i.head.e_phentsize = sizeof(Elf64_Phdr);
    i.head.e_phoff = offsetof(struct image, seg);
    i.head.e_phnum = (Elf64_Half)n;
    for (unsigned s = 0; s < 3; s++)
        i.seg[s] = (Elf64_Phdr){.p_type = PT_LOAD, .p_offset = offsetof(struct image, notes)};
    return &i;
}

/* Writes a note at `at` of the notes; where the next one goes. */
static size_t note(struct image *i, size_t at, const char *name, uint32_t n_name, uint32_t n_desc)
{
    Elf64_Nhdr h = {.n_namesz = n_name, .n_descsz = n_desc, .n_type = 4};

    memcpy(i->notes + at, &h, sizeof(h));
    memcpy(i->notes + at + sizeof(h), name, strlen(name) + 1);
    return at + sizeof(h) + (n_name + 3u) / 4 * 4 + (n_desc + 3u) / 4 * 4;
}

static const char *why(const struct image *i)
{
    put("./program", i, sizeof(*i), 0755);
    return clock_out_of_reach("./program");
}

#define ASSERT_WHY(found, expected)                                                                \
    do {                                                                                           \
        const char *text_ = found;                                                                 \
                                                                                                   \
        if (!text_)                                                                                \
            fail_msg("reached, expected: %s", expected);                                           \
        assert_string_equal(text_, expected);                                                      \
    } while (0)

/* ---- ELF ---- */

static void a_program_with_an_interpreter_is_reached(void **state)
{
    struct image *i;

    (void)state;
    for (unsigned s = 0; s < 3; s++) {
        i = image(3);
        ASSERT_WHY(why(i), alone);
        i->seg[s].p_type = PT_INTERP;
        assert_null(why(i));
        i->head.e_phnum = (Elf64_Half)s; /* just before it */
        ASSERT_WHY(why(i), alone);
    }
    ASSERT_WHY(why(image(0)), alone);
}

static void a_program_of_another_size_is_not_reached(void **state)
{
    struct image *i = image(1);

    (void)state;
    i->seg[0].p_type = PT_INTERP;
    i->head.e_ident[EI_CLASS] = ELFCLASS32;
    ASSERT_WHY(why(i), bits);
    i->head.e_ident[EI_CLASS] = ELFCLASSNONE;
    ASSERT_WHY(why(i), bits);
}

/* Nothing is said of what cannot be read. */
static void what_is_cut_off_or_strange_is_nobodys(void **state)
{
    struct image *i = image(1);

    (void)state;
    i->head.e_phentsize++;
    assert_null(why(i));
    i = image(3);
    put("./program", i, sizeof(i->head) + 2 * sizeof(i->seg[0]), 0755);
    assert_null(clock_out_of_reach("./program"));
    put("./program", i, sizeof(i->head) + 3 * sizeof(i->seg[0]) - 1, 0755);
    assert_null(clock_out_of_reach("./program"));
    put("./program", i, sizeof(i->head) + 3 * sizeof(i->seg[0]), 0755);
    ASSERT_WHY(clock_out_of_reach("./program"), alone);
    i = image(0);
    put("./program", i, sizeof(i->head), 0755); /* the head alone */
    ASSERT_WHY(clock_out_of_reach("./program"), alone);
    put("./program", i, sizeof(i->head) - 1, 0755);
    assert_null(clock_out_of_reach("./program"));
    i->head.e_ident[EI_MAG3] = 'f';
    assert_null(why(i));
    put_text("./program", "");
    assert_null(clock_out_of_reach("./program"));
    assert_null(clock_out_of_reach("./missing"));
    assert_null(clock_out_of_reach("."));
}

static void a_note_of_go_is_found_wherever_it_is(void **state)
{
    struct image *i = image(2);
    size_t end;

    (void)state;
    i->seg[0].p_type = PT_INTERP;
    i->seg[1].p_type = PT_NOTE;
    end = note(i, 0, "Go", 4, 0);
    i->seg[1].p_filesz = end;
    ASSERT_WHY(why(i), go);
    i->seg[1].p_filesz = end - 1; /* it ends before */
    assert_null(why(i));
    i->seg[1].p_filesz = end;
    i->seg[1].p_type = PT_LOAD; /* no note */
    assert_null(why(i));
    /* Of a static one, too. */
    i->seg[1].p_type = PT_NOTE;
    i->seg[0].p_type = PT_LOAD;
    ASSERT_WHY(why(i), go);
    i->seg[0].p_type = PT_INTERP;
    note(i, 0, "Go", 3, 0); /* a name of another length */
    assert_null(why(i));
    note(i, 0, "Gp", 4, 0);
    assert_null(why(i));
}

/* Names and descriptions are padded to four bytes. */
static void notes_before_it_are_passed_over(void **state)
{
    static const struct {
        const char *name;
        uint32_t n_name, n_desc;
    } rows[] = {{"GNU", 4, 0},     {"GNU", 4, 16}, {"GNU", 4, 1}, {"GNU", 4, 3},
                {"GNU", 4, 4},     {"GNU", 4, 5},  {"", 0, 0},    {"a", 1, 0},
                {"stapsdt", 8, 3}, {"abcd", 5, 2}, {"", 0, 7}};

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct image *i = image(2);
        size_t at = note(i, 0, rows[r].name, rows[r].n_name, rows[r].n_desc);

        i->seg[0].p_type = PT_INTERP;
        i->seg[1].p_type = PT_NOTE;
        i->seg[1].p_filesz = note(i, at, "Go", 4, 0);
        ASSERT_WHY(why(i), go);
        i->notes[at + sizeof(Elf64_Nhdr)] = 'H';
        assert_null(why(i));
    }
}

/* So that a file of many notes costs nothing. */
static void notes_are_looked_at_for_a_page(void **state)
{
    struct image *i = image(2);

    (void)state;
    i->seg[0].p_type = PT_INTERP;
    i->seg[1].p_type = PT_NOTE;
    i->seg[1].p_filesz = sizeof(i->notes);
    note(i, note(i, 0, "GNU", 4, 4092 - 16), "Go", 4, 0); /* at 4092 */
    ASSERT_WHY(why(i), go);
    note(i, note(i, 0, "GNU", 4, 4096 - 16), "Go", 4, 0); /* at 4096 */
    assert_null(why(i));
    /* Beyond the end of the file. */
    i = image(2);
    i->seg[0].p_type = PT_INTERP;
    i->seg[1] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = sizeof(*i), .p_filesz = 64};
    assert_null(why(i));
    i->seg[1].p_offset = sizeof(*i) - 12;
    memcpy(i->notes + sizeof(i->notes) - 12, "\4\0\0\0\0\0\0\0\4\0\0\0", 12);
    assert_null(why(i));
}

/* ---- scripts ---- */

static void of_a_script_its_interpreter_counts(void **state)
{
    struct image *i = image(1);
    char text[300];

    (void)state;
    put("static", i, sizeof(*i), 0755);
    i->seg[0].p_type = PT_INTERP;
    put("dynamic", i, sizeof(*i), 0755);
    setenv("PATH", dir, 1);
    static const struct {
        const char *head; /* %s: the folder */
        bool reached;
    } rows[] = {
        {"#!%s/static\n", false},
        {"#!%s/dynamic\n", true},
        {"#! \t %s/static\n", false},
        {"#!%s/static -x\n", false},
        {"#!%s/static\t-x\n", false},
        {"#!%s/static", false},
        {"#!%s/static\n#!%s/dynamic", false},
        {"#!/usr/bin/env static\n", false},
        {"#!/usr/bin/env static -x\n", false},
        {"#!/usr/bin/env static\tdynamic\n", false},
        {"#!/usr/bin/env \t static\n", false},
        {"#!/usr/bin/env dynamic\n", true},
        {"#!/env static\n", false},
        {"#!/usr/bin/env -static\n", true}, /* an option of env, which is reached */
        {"#!%s/static /usr/bin/env\n", false},
        {"#!%s/dynamic static\n", true},
        {"#!%s/static dynamic\n", false},
        {"# %s/static\n", true}, /* no script */
        {" #!%s/static\n", true},
        {"#!", true},
        {"#!\n", true},
        {"#! \n", true},
    };
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        const char *found;

        snprintf(text, sizeof(text), rows[r].head, dir, dir);
        put_text("./script", text);
        found = clock_out_of_reach("./script");
        if ((found == NULL) != rows[r].reached)
            fail_msg("%s: %s", text, found ? found : "reached");
        if (found)
            assert_string_equal(found, alone);
    }
}

static void env_without_a_name_is_itself(void **state)
{
    struct image *i = image(1);
    char text[300];

    (void)state;
    put("env", i, sizeof(*i), 0755);
    snprintf(text, sizeof(text), "#!%s/env\n", dir);
    put_text("./script", text);
    ASSERT_WHY(clock_out_of_reach("./script"), alone);
    snprintf(text, sizeof(text), "#!%s/env -S\n", dir);
    put_text("./script", text);
    ASSERT_WHY(clock_out_of_reach("./script"), alone);
    snprintf(text, sizeof(text), "#!%s/env %s/script\n", dir, dir); /* itself: it ends */
    put_text("./script", text);
    assert_null(clock_out_of_reach("./script"));
    put("aenv", i, sizeof(*i), 0755); /* is no env */
    snprintf(text, sizeof(text), "#!%s/aenv %s/script\n", dir, dir);
    put_text("./script", text);
    ASSERT_WHY(clock_out_of_reach("./script"), alone);
}

/* A script of a script, so many deep as the kernel has it. */
static void scripts_of_scripts_end_at_the_kernels_number(void **state)
{
    struct image *i = image(1);

    (void)state;
    put("s0", i, sizeof(*i), 0755);
    put_text("s1", "#!./s0\n");
    put_text("s2", "#!./s1\n");
    put_text("s3", "#!./s2\n");
    put_text("s4", "#!./s3\n");
    ASSERT_WHY(clock_out_of_reach("./s1"), alone);
    ASSERT_WHY(clock_out_of_reach("./s3"), alone);
    assert_null(clock_out_of_reach("./s4"));
}

/* ---- where it is found ---- */

static void a_command_is_found_on_the_path(void **state)
{
    struct image *i = image(1);
    char path[400];

    (void)state;
    assert_int_equal(mkdir("a", 0755) || mkdir("b", 0755) || mkdir("c", 0755), 0);
    put("a/tool", i, sizeof(*i), 0644); /* cannot be run */
    put("b/tool", i, sizeof(*i), 0755);
    i->seg[0].p_type = PT_INTERP;
    put("c/tool", i, sizeof(*i), 0755);
    static const struct {
        const char *path;
        bool reached;
    } rows[] = {{"a:b", false},       {"b:c", false},  {"c:b", true}, {"a:c:b", true},
                {"nowhere:b", false}, {"b", false},    {"c", true},   {"nowhere", true},
                {"", true},           {"a/:b/", false}};
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        setenv("PATH", rows[r].path, 1);
        if ((clock_out_of_reach("tool") == NULL) != rows[r].reached)
            fail_msg("PATH=%s", rows[r].path);
    }
    assert_null(clock_out_of_reach("a/tool") ? NULL : "of a path nobody asks whether it runs");
    /* An empty part is the working directory. */
    i->seg[0].p_type = PT_LOAD;
    put("here", i, sizeof(*i), 0755);
    setenv("PATH", ":c", 1);
    ASSERT_WHY(clock_out_of_reach("here"), alone);
    setenv("PATH", "c::a", 1);
    ASSERT_WHY(clock_out_of_reach("here"), alone);
    /* A part that does not fit is passed over. */
    assert_int_equal(snprintf(path, sizeof(path), "%0*d:b", 300, 7), 302);
    setenv("PATH", path, 1);
    ASSERT_WHY(clock_out_of_reach("tool"), alone);
    unsetenv("PATH");
    assert_null(clock_out_of_reach("tool"));
    assert_null(clock_out_of_reach("sh")); /* in /bin */
}

/* Of 4096 bytes with the end of the text. */
static void a_path_that_does_not_fit_is_nobodys(void **state)
{
    struct image *i = image(1);
    char name[4200], path[8300];

    (void)state;
    put("static", i, sizeof(*i), 0755);
    for (unsigned n = 0; n < 4094; n++)
        name[n] = n & 1 ? '/' : '.';
    snprintf(name + 4088, sizeof(name) - 4088, "./static"); /* 4096 */
    assert_null(clock_out_of_reach(name));
    memmove(name, name + 2, 4096);
    ASSERT_WHY(clock_out_of_reach(name), alone);
    name[strlen(name) - strlen("static")] = 0; /* 4088 with the slash */
    snprintf(path, sizeof(path), "./%s:.", name);
    setenv("PATH", path, 1);
    ASSERT_WHY(clock_out_of_reach("static"), alone);
}

static void who_becomes_another_user_is_not_reached(void **state)
{
    struct image *i = image(1);

    (void)state;
    i->seg[0].p_type = PT_INTERP;
    put("own", i, sizeof(*i), 04755);
    assert_null(clock_out_of_reach("./own")); /* of the same user */
    put("sgid", i, sizeof(*i), 02755);
    assert_null(clock_out_of_reach("./sgid"));
    if (geteuid() != 0)
        return;
    put("others", i, sizeof(*i), 0755);
    assert_int_equal(chown("others", 4321, 4321), 0);
    assert_null(clock_out_of_reach("./others"));
    assert_int_equal(chmod("others", 04755), 0);
    ASSERT_WHY(clock_out_of_reach("./others"), other);
    assert_int_equal(truncate("others", 1), 0); /* whatever it is */
    assert_int_equal(chmod("others", 04755), 0);
    ASSERT_WHY(clock_out_of_reach("./others"), other);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_program_with_an_interpreter_is_reached),
        TEST(a_program_of_another_size_is_not_reached),
        TEST(what_is_cut_off_or_strange_is_nobodys),
        TEST(a_note_of_go_is_found_wherever_it_is),
        TEST(notes_before_it_are_passed_over),
        TEST(notes_are_looked_at_for_a_page),
        TEST(of_a_script_its_interpreter_counts),
        TEST(env_without_a_name_is_itself),
        TEST(scripts_of_scripts_end_at_the_kernels_number),
        TEST(a_command_is_found_on_the_path),
        TEST(a_path_that_does_not_fit_is_nobodys),
        TEST(who_becomes_another_user_is_not_reached),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
