/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of life cycles that seeds of test_keep_seeds.c have found. Each is run at many moments: the seed of the order is its number. */
#include "simulated_life.h"

#define MOMENTS 40u

static struct fate_drawn *fate;

static struct fate_drawn fate_draw(void)
{
    return *fate;
}

static void finish(void)
{
    sim_end();
    if (*sim->failed)
        fail_msg("%s", sim->failed);
}

/* A fabric of `procs` switches is up. */
static void begin_up(unsigned moment, unsigned procs)
{
    sim_begin(moment + 1, procs);
    HOLDS(!command_whole("up", 0), "no fabric");
}

static struct task *switch_of(const char *name)
{
    for (unsigned i = 0; i < sim->n_tasks; i++)
        if (task_lives(&sim->task[i]) && !strcmp(sim->task[i].name, name))
            return &sim->task[i];
    return NULL;
}

/* The first process of a start, or its keeper. */
static struct task *starter_of(bool keeper)
{
    for (unsigned i = 0; i < sim->n_tasks; i++) {
        struct task *t = &sim->task[i];

        if (task_lives(t) && is_keeper(t) && (keeper ? t->keeper : t->id == t->starter))
            return t;
    }
    return NULL;
}

static void kill_switch(void)
{
    struct task *t = switch_of("p0");

    if (t)
        signal_send(t, SIGKILL, NULL);
}

/* A file system that is full took a part of it. */
static void how_a_switch_ended_is_whole(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MOMENTS; i++) {
        begin_up(i, 2);
        sim->full = true;
        kill_switch();
        for (unsigned k = 0; k < 50; k++) {
            sim_run(sim->now + 100 * US);
            oracle_look();
        }
        finish();
    }
}

/* The second one saw the first, which had the directory's lock, as the keeper. */
static void two_take_a_fabric_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6 * MOMENTS; i++) {
        const struct command *a, *b;

        begin_up(i, 2);
        signal_send(starter_of(true), SIGKILL, NULL); /* else it removes the directory */
        a = command_give("down", 0);
        sim_run(sim->now + (int64_t)i * 50 * US);
        b = command_give("down", 0);
        command_wait(a);
        command_wait(b);
        HOLDS(is_gone(0), "two leave something");
        finish();
    }
}

/* It was not up, for who looked again. */
static void the_last_process_ends_meanwhile(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MOMENTS; i++) {
        const struct command *down;

        begin_up(i, 1);
        down = command_give("down", 0);
        sim_run(sim->now + (int64_t)i * 60 * US);
        kill_switch();
        HOLDS(!command_wait(down), "what has ended is not up");
        HOLDS(is_gone(0), "what has ended is left");
        finish();
    }
}

/* A look that failed showed the switches alone, and the keeper blamed one that had been told to end. */
static void descriptors_are_out(void **state)
{
    (void)state;
    fate->ready_ns = 100 * S;
    for (unsigned i = 0; i < 4 * MOMENTS; i++) {
        const struct command *up, *down;

        sim_begin(i + 1, 3);
        sim->turns = 2;
        up = command_give("up", 0);
        sim_run(sim->now + 30 * MS);
        sim->faults = 200;
        down = command_give("down", 0);
        command_wait(down);
        sim->faults = 0;
        command_whole("down", 0);
        command_wait(up);
        HOLDS(is_gone(0), "something is left");
        finish();
    }
    fate->ready_ns = MS;
}

/* Parts of a fabric that has ended, or of a removal that was cut short. */
static void parts_are_taken_for_what_they_are(void **state)
{
    static const char *const left[][3] = {{"proc/p0.log", "port/h/1.state/state", NULL},
                                          {"keeper", "port/h/1.0.sock", NULL},
                                          {"keeper", "fabric.conf", "link/x.sock"},
                                          {"proc/p0.ended", "fabric.path", "machine"},
                                          {"proc/p0.ended.0123.tmp", "proc/p1.log", NULL}};
    char path[96];

    (void)state;
    for (unsigned i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        for (unsigned up = 0; up < 2; up++) {
            sim_begin(i + 1, 1);
            for (unsigned k = 0; k < 3 && left[i][k]; k++) {
                snprintf(path, sizeof(path), BASE "/a/%s", left[i][k]);
                file_put(path, "x");
            }
            HOLDS(!up || !command_whole("up", 0), "no fabric in what is left in row %u", i);
            HOLDS(!command_whole("down", 0), "row %u does not go", i);
            HOLDS(is_gone(0) && !file_of(BASE), "row %u is left", i);
            finish();
        }
}

/* What is no fabric's stays. */
static void files_of_others_stay(void **state)
{
    struct sim_file *f;

    (void)state;
    sim_begin(1, 1);
    f = file_put(BASE "/a/letter", "to you");
    f->theirs = true;
    file_put(BASE "/a/port/h", "");
    file_put(BASE "/a/keeper", "");
    HOLDS(command_whole("up", 0) == 1, "a fabric goes up over a letter");
    HOLDS(command_whole("down", 0) == 1, "a letter is taken down");
    HOLDS(file_says(BASE "/a/letter", "to you"), "the letter is another one");
    finish();
}

/* The directory above it stayed. */
static void a_start_that_makes_no_directory(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MOMENTS; i++) {
        sim_begin(i + 1, 1);
        sim->full = true;
        HOLDS(command_whole("up", 0) == 1, "up on a full file system");
        HOLDS(!file_of(BASE), "something is left on a full file system");
        finish();
    }
}

/* ---- what seeds had to be shown ---- */

/* Who is told to end it lets it go on first. */
static void a_start_that_is_stopped_ends(void **state)
{
    (void)state;
    fate->late_ns = 100 * S;
    for (unsigned i = 0; i < MOMENTS; i++) {
        struct task *t;
        struct command *up;

        sim_begin(i + 1, 1);
        up = command_give("up", 0);
        sim_run(sim->now + 30 * MS);
        t = starter_of(i % 2);
        HOLDS(t, "nobody starts it");
        if (t)
            signal_send(t, SIGSTOP, NULL);
        sim_run(sim->now + MS);
        commands_are_asked(0);
        signal_send(task_by_id(up->id), SIGTERM, NULL);
        HOLDS(command_wait(up) == 128 + SIGTERM, "a start that is told to end ends otherwise");
        HOLDS(is_gone(0), "a start that was told to end is left");
        finish();
    }
    fate->late_ns = MS;
}

/* Killed at any moment, it says nothing to anybody. */
static void a_fabric_goes_with_its_command(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MOMENTS; i++) {
        const struct command *perf;
        struct task *t;

        sim_begin(i + 1, 2);
        perf = command_give("perf", 0);
        sim_run(sim->now + (int64_t)draw(150) * MS);
        t = task_by_id(perf->id);
        commands_are_asked(0);
        if (task_lives(t))
            signal_send(t, SIGKILL, NULL);
        sim_run(sim->now + ALONE_MOST);
        HOLDS(is_gone(0), "a fabric is left by a command that was killed");
        finish();
    }
}

static int setup(void **state)
{
    (void)state;
    fate = sim_room(sizeof(*fate));
    *fate =
        (struct fate_drawn){.late_ns = MS, .ready_ns = MS, .lives_ns = INT64_MAX, .fate = SERVES};
    machine_new();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_a_switch_ended_is_whole),
        cmocka_unit_test(two_take_a_fabric_down),
        cmocka_unit_test(the_last_process_ends_meanwhile),
        cmocka_unit_test(descriptors_are_out),
        cmocka_unit_test(parts_are_taken_for_what_they_are),
        cmocka_unit_test(files_of_others_stay),
        cmocka_unit_test(a_start_that_makes_no_directory),
        cmocka_unit_test(a_start_that_is_stopped_ends),
        cmocka_unit_test(a_fabric_goes_with_its_command),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
