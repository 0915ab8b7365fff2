/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/shared_object.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

/* Says what a regular file is if it is no shared object for this machine. NULL: it may be one. */
static const char *not_shared(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    Elf64_Ehdr h = {0};
    ssize_t n = fd < 0 ? 0 : read(fd, &h, sizeof(h));

    if (fd >= 0)
        close(fd);
    if (n != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG))
        return "a file that is no ELF object";
    if (h.e_type != ET_DYN)
        return "an ELF file of another kind";
#ifdef MACHINE
    if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != MACHINE) {
        snprintf(text, size, "one of another machine (ELF machine %u, here it is %u)", h.e_machine,
                 MACHINE);
        return text;
    }
#endif
    return NULL;
}

const char *shared_object_unfit(const char *path, char *text, size_t size)
{
    char other[80];
    struct stat st;
    const char *what = NULL;

    if (!strchr(path, '/'))
        return NULL;
    if (stat(path, &st) || access(path, R_OK)) {
        snprintf(text, size, "cannot open shared object file: %s", strerror(errno));
        return text;
    }
    if (!S_ISREG(st.st_mode))
        what = S_ISDIR(st.st_mode)    ? "a directory"
               : S_ISFIFO(st.st_mode) ? "a FIFO"
               : S_ISSOCK(st.st_mode) ? "a socket"
                                      : "a device";
    else if (!st.st_size)
        what = "an empty file";
    else
        what = not_shared(path, other, sizeof(other));
    if (!what)
        return NULL;
    snprintf(text, size, "found %s, expected a shared object", what);
    return text;
}
