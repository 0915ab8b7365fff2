/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/launch.h"

#include "system/own_path.h"
#include "system/temp_file.h"
#include "trib/find.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOTE "launch"

/* The launcher that launch_note() wrote; "" if another user owns the file, as its text is run. */
static const char *note_read(const char *dir)
{
    return where_is_own(text_of("%s/" NOTE, dir)) ? fabric_of_file(dir, NOTE) : "";
}

const char *launch_how(const char *dir, const char *how)
{
    how = how ? how : text_env("TRIB_RSH");
    how = how ? how : note_read(dir);
    if (!strcmp(how, "mpirun"))
        return "mpirun -np 1 --host";
    if (!strcmp(how, "srun"))
        return "srun -u -Q -N1 -n1 --overlap -w $TRIB_MACHINE";
    return *how ? how : "ssh";
}

struct words launch_command(const char *what, const char *here, const char *how,
                            const struct fabric_of *f)
{
    const char *program = find_program("trib-machines"), *plan = find_program("trib-plan");
    const char *machine =
        where_is_there(text_of("%s/machine", f->dir)) ? fabric_of_file(f->dir, "machine") : "";
    struct words command = {0};

    machine = *machine || !here ? machine : here;
    words_append_all(&command, program, what, machine, how, find_myself(), plan, f->conf,
                     fabric_of_name(f->dir));
    return command;
}

void launch_note(const char *dir, const char *how)
{
    char why[OWN_WHY];
    int at = own_dir_open(dir, false, why, sizeof(why));
    struct temp_file t;
    int fd = at < 0 ? -1 : temp_file_open(&t, at, NOTE, 0600);

    if (fd >= 0) {
        if (dprintf(fd, "%s\n", how) < 0)
            temp_file_drop(&t);
        else
            (void)temp_file_publish(&t, NOTE, false);
        close(fd);
    }
    if (at >= 0)
        close(at);
}
