/* SPDX-License-Identifier: BSD-3-Clause */
/* A secret comes from where nobody else can read or write it, or is refused by name and never shown. */
#include "system/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define LONGEST                                                                                    \
    "1234567890123456789012345678901234567890123456789012345678901234567890123456789"              \
    "012345678901234567890123456789012345678901234567"

static char base[64], text[CREDENTIAL_TEXT], why[CREDENTIAL_WHY];

static int setup(void **state)
{
    (void)state;
    umask(022);
    unsetenv("T_SECRET");
    unsetenv("T_SECRET_FILE");
    snprintf(base, sizeof(base), "/tmp/test_secret.XXXXXX");
    return mkdtemp(base) ? chdir(base) : -1;
}

static int teardown(void **state)
{
    char cmd[128];

    (void)state;
    snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
    return chdir("/") || system(cmd);
}

static void write_file(const char *path, const char *what, size_t bytes, unsigned mode)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, what, bytes), bytes);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* expected NULL: it is taken, as `found` without the line's end. */
static void check(const char *found, int rc, const char *expected)
{
    if (!expected) {
        if (rc || strncmp(text, found, strlen(text)) != 0 ||
            strspn(found + strlen(text), "\r\n") != strlen(found + strlen(text)))
            fail_msg("'%s' became '%s': %d, %s", found, text, rc, why);
        return;
    }
    if (rc >= 0 || rc == -ENOENT || !strstr(why, expected))
        fail_msg("'%s': %d, %s, expected '%s'", found, rc, why, expected);
    if (strlen(found) > 3 && strstr(why, found))
        fail_msg("the secret is in the message: %s", why);
}

static void texts_of_sixteen_characters_and_more(void **state)
{
    static const struct {
        const char *found, *expected;
    } rows[] = {
        {"sixteen letters.", NULL},
        {"sixteen letters.\n", NULL},
        {"sixteen letters.\r\n", NULL},
        {LONGEST, NULL},
        {LONGEST "\n", NULL},
        {LONGEST "8", "found a secret of 128 characters, expected 16 to 127"},
        {LONGEST LONGEST, "and more, expected 16 to 127"},
        {"fifteen letters", "found a secret of 15 characters, expected 16 to 127"},
        {"fifteen letters\n", "found a secret of 15 characters, expected 16 to 127"},
        {"", "found a secret of 0 characters"},
        {"two lines of\nthat length", "found a control character as number 13"},
        {"a tab in the\tmiddle", "found a control character as number 13"},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        setenv("T_SECRET", rows[i].found, 1);
        check(rows[i].found, credential_from_env("T_SECRET", text, why), rows[i].expected);
        unsetenv("T_SECRET");
        write_file("file", rows[i].found, strlen(rows[i].found), 0600);
        setenv("T_SECRET_FILE", "file", 1);
        check(rows[i].found, credential_from_env("T_SECRET", text, why), rows[i].expected);
        unsetenv("T_SECRET_FILE");
    }
    write_file("file", "a zero in\0the middle of it", 26, 0600);
    setenv("T_SECRET_FILE", "file", 1);
    check("a zero in", credential_from_env("T_SECRET", text, why),
          "control character as number 10");
}

static void neither_is_no_error(void **state)
{
    (void)state;
    assert_int_equal(credential_from_env("T_SECRET", text, why), -ENOENT);
    assert_string_equal(why, "");
}

static void the_variable_goes_before_the_file(void **state)
{
    (void)state;
    setenv("T_SECRET", "of the environment", 1);
    setenv("T_SECRET_FILE", "nowhere", 1);
    assert_int_equal(credential_from_env("T_SECRET", text, why), 0);
    assert_string_equal(text, "of the environment");
    unsetenv("T_SECRET");
    assert_int_equal(credential_from_env("T_SECRET", text, why), -EINVAL);
    assert_non_null(strstr(why, "T_SECRET_FILE: cannot read nowhere: No such file"));
}

static void a_file_is_the_users_alone(void **state)
{
    static const unsigned modes[] = {0604, 0602, 0640, 0620, 0644, 0666, 0601, 0610};

    (void)state;
    setenv("T_SECRET_FILE", "file", 1);
    for (unsigned i = 0; i < LEN(modes); i++) {
        char mode[40];

        write_file("file", "sixteen letters and", 19, modes[i]);
        assert_int_equal(credential_from_env("T_SECRET", text, why), -EPERM);
        snprintf(mode, sizeof(mode), "with mode %04o, expected", modes[i]);
        assert_non_null(strstr(why, mode));
    }
    write_file("file", "sixteen letters and", 19, 0400);
    assert_int_equal(credential_from_env("T_SECRET", text, why), 0);
    unlink("file");
    mkdir("file", 0700);
    assert_true(credential_from_env("T_SECRET", text, why) < 0);
    rmdir("file");
    mkfifo("file", 0600); /* nobody waits for its other end */
    assert_int_equal(credential_from_env("T_SECRET", text, why), -EINVAL);
    unlink("file");
    if (geteuid())
        return;
    write_file("file", "sixteen letters and", 19, 0600);
    assert_int_equal(chown("file", 65534, 65534), 0);
    assert_int_equal(credential_from_env("T_SECRET", text, why), -EPERM);
    assert_non_null(strstr(why, "of user 65534"));
}

static void a_user_has_one(void **state)
{
    char dir[96], first[CREDENTIAL_TEXT];
    struct stat st;

    (void)state;
    snprintf(dir, sizeof(dir), "%s/own", base);
    assert_int_equal(credential_own(dir, "secret", first, why), 0);
    assert_int_equal(strlen(first), 64);
    assert_int_equal(credential_own(dir, "secret", text, why), 0);
    assert_string_equal(text, first);
    assert_int_equal(stat("own/secret", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat("own", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    unlink("own/secret");
    assert_int_equal(credential_own(dir, "secret", text, why), 0);
    assert_string_not_equal(text, first);

    unlink("own/secret");
    assert_int_equal(symlink("/etc/hostname", "own/secret"), 0);
    assert_int_equal(credential_own(dir, "secret", text, why), -EPERM);
    assert_non_null(strstr(why, "own/secret: found a link"));
    unlink("own/secret");
    assert_int_equal(chmod("own", 0777), 0);
    assert_int_equal(credential_own(dir, "secret", text, why), -EPERM);
    assert_int_equal(access("own/secret", F_OK), -1);
}

/* Processes that make it at once have one. */
static void the_first_one_makes_it(void **state)
{
    char dir[96], all[16][CREDENTIAL_TEXT];
    int in[2], status;

    (void)state;
    snprintf(dir, sizeof(dir), "%s/own", base);
    assert_int_equal(pipe(in), 0);
    for (unsigned i = 0; i < LEN(all); i++)
        if (!fork()) {
            memset(text, 0, sizeof(text));
            _exit(credential_own(dir, "secret", text, why) ||
                  write(in[1], text, sizeof(text)) != sizeof(text));
        }
    for (unsigned i = 0; i < LEN(all); i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
        assert_int_equal(read(in[0], all[i], sizeof(all[i])), sizeof(all[i]));
        assert_string_equal(all[i], all[0]);
    }
    assert_int_equal(system("test \"$(ls own)\" = secret"), 0);
    close(in[0]);
    close(in[1]);
}

static void bytes(void **state)
{
    uint8_t a[40] = {1}, b[40] = {1}, mac[CREDENTIAL_MAC];
    /* RFC 4231, case 2. */
    static const uint8_t known[CREDENTIAL_MAC] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e,
                                                  0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
                                                  0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
                                                  0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};

    (void)state;
    assert_true(credential_same(a, b, sizeof(a)));
    for (unsigned i = 0; i < sizeof(a); i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            b[i] ^= (uint8_t)(1u << bit);
            assert_false(credential_same(a, b, sizeof(a)));
            assert_true(credential_same(a, b, i));
            b[i] ^= (uint8_t)(1u << bit);
        }
    assert_int_equal(credential_random(a, sizeof(a)), 0);
    assert_int_equal(credential_random(b, sizeof(b)), 0);
    assert_memory_not_equal(a, b, sizeof(a));
    credential_wipe(a, sizeof(a));
    memset(b, 0, sizeof(b));
    assert_memory_equal(a, b, sizeof(a));
    assert_true(credential_mac("Jefe", "what do ya want for nothing?", 28, mac));
    assert_memory_equal(mac, known, sizeof(mac));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts_of_sixteen_characters_and_more, setup, teardown),
        cmocka_unit_test_setup_teardown(neither_is_no_error, setup, teardown),
        cmocka_unit_test_setup_teardown(the_variable_goes_before_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_is_the_users_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_user_has_one, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_one_makes_it, setup, teardown),
        cmocka_unit_test(bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
