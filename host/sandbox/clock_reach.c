/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/sandbox/clock_reach.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRIPTS 4 /* depth of interpreters that are scripts, as the kernel limits it */
#define PATH    4096

/* Finds the command's file, as execvp(3) does. */
static bool clock_reach_find(const char *command, char path[PATH])
{
    const char *at = getenv("PATH"), *end;

    if (strchr(command, '/'))
        return snprintf(path, PATH, "%s", command) < PATH;
    for (at = at ? at : "/bin:/usr/bin"; *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, ':');
        if (snprintf(path, PATH, "%.*s%s%s", (int)(end - at), at, end == at ? "" : "/", command) <
                PATH &&
            !access(path, X_OK))
            return true;
    }
    return false;
}

/* ---- ELF ---- */

/* Go's linker marks its programs with a note of the name "Go". */
static bool is_go_note(int fd, const Elf64_Phdr *p)
{
    struct {
        Elf64_Nhdr head;
        char name[4];
    } note;

    for (uint64_t at = 0; at + sizeof(note) <= p->p_filesz && at < 4096;) {
        if (pread(fd, &note, sizeof(note), (off_t)(p->p_offset + at)) != sizeof(note))
            return false;
        if (note.head.n_namesz == 4 && !memcmp(note.name, "Go\0", 4))
            return true;
        at += sizeof(note.head) + ((note.head.n_namesz + 3ULL) & ~3ULL) +
              ((note.head.n_descsz + 3ULL) & ~3ULL);
    }
    return false;
}

static const char *reach_of_elf(int fd, const Elf64_Ehdr *e)
{
    bool loaded = false, go = false;
    Elf64_Phdr p;

    if (e->e_ident[EI_CLASS] != ELFCLASS64)
        return "is not a 64-bit program, and the library is one";
    if (e->e_phentsize != sizeof(p))
        return NULL;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        if (pread(fd, &p, sizeof(p), (off_t)(e->e_phoff + i * sizeof(p))) != sizeof(p))
            return NULL;
        loaded |= p.p_type == PT_INTERP;
        go |= p.p_type == PT_NOTE && is_go_note(fd, &p);
    }
    if (go)
        return "is a Go program, which asks the kernel for the time itself";
    return loaded ? NULL : "is linked statically, so no library can be loaded into it";
}

/* ---- scripts ---- */

/* Replaces the head of a script by the name of its interpreter; "env NAME" counts as NAME. */
static bool interpreter(char *head)
{
    char *name = head + 2 + strspn(head + 2, " \t"), *rest;

    name[strcspn(name, "\n")] = 0;
    rest = name + strcspn(name, " \t");
    if (*rest)
        *rest++ = 0;
    rest += strspn(rest, " \t");
    if (strlen(name) >= 4 && !strcmp(name + strlen(name) - 4, "/env") && *rest && *rest != '-') {
        rest[strcspn(rest, " \t")] = 0;
        name = rest;
    }
    memmove(head, name, strlen(name) + 1);
    return *head;
}

const char *clock_out_of_reach(const char *command)
{
    union {
        Elf64_Ehdr elf;
        char text[PATH];
    } head;
    char path[PATH];
    const char *why = NULL;
    bool script = true;
    struct stat st;

    for (unsigned i = 0; script && i < SCRIPTS && clock_reach_find(command, path); i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, &head, sizeof(head) - 1);

        if (n >= 0)
            head.text[n] = 0;
        script = n > 2 && !memcmp(head.text, "#!", 2) && interpreter(head.text);
        if (n >= 0 && !fstat(fd, &st) && st.st_mode & S_ISUID && st.st_uid != geteuid())
            why = "runs as another user, so the loader preloads nothing";
        else if (n >= (ssize_t)sizeof(head.elf) && !memcmp(head.text, ELFMAG, SELFMAG))
            why = reach_of_elf(fd, &head.elf);
        if (fd >= 0)
            close(fd);
        command = head.text;
    }
    return why;
}
