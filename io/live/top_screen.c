/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/top.h"

#include <errno.h>
#include <stdio.h>

#ifndef TRIB_NCURSES
int top_screen(struct top *t)
{
    (void)t;
    fputs("trib-top: built without ncurses (Debian: libncurses-dev); --batch prints\n", stderr);
    return -ENOSYS;
}
#else
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>

#define FASTEST 0.1
#define SLOWEST 60.0

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

static void top_screen_draw(struct top *t)
{
    static const attr_t looks[] = {
        [TOP_PLAIN] = A_NORMAL, [TOP_TITLE] = A_BOLD,   [TOP_HEADS] = A_REVERSE,
        [TOP_GOOD] = A_NORMAL,  [TOP_WARNING] = A_BOLD, [TOP_BAD] = A_BOLD | A_UNDERLINE};
    int rows, columns;
    struct top_line *lines;
    unsigned n;

    getmaxyx(stdscr, rows, columns);
    lines = calloc((size_t)rows + 1, sizeof(*lines));
    if (!lines)
        return;
    n = top_lines(t, (unsigned)columns, (unsigned)rows, lines);
    erase();
    for (unsigned i = 0; i < n; i++) {
        attr_t a = looks[lines[i].look];

        if (has_colors() && lines[i].look >= TOP_GOOD)
            a = A_NORMAL | (attr_t)COLOR_PAIR(lines[i].look);
        attrset(a);
        mvaddnstr((int)i, 0, lines[i].text, columns);
    }
    attrset(A_NORMAL);
    refresh();
    free(lines);
}

static void scroll_by(struct top *t, int rows)
{
    t->scroll = rows < 0 && t->scroll < (unsigned)-rows ? 0 : t->scroll + (unsigned)rows;
}

static void top_screen_show(struct top *t, enum top_panel panel)
{
    t->panel = panel;
    t->scroll = 0;
    t->help = false;
}

/* Acts on a key. False: quit. */
static bool take_key(struct top *t, int key)
{
    int page = getmaxy(stdscr) - 4;

    switch (key) {
    case 'q':
        return false;
    case 'l':
        top_screen_show(t, TOP_LINKS);
        break;
    case 'g':
        top_screen_show(t, TOP_GROUPS);
        break;
    case 'p':
        top_screen_show(t, TOP_PROCESSES);
        break;
    case 's':
        t->sort = (t->sort + 1) % TOP_SORTS;
        t->scroll = 0;
        break;
    case 'f':
        t->fabric++;
        break;
    case 'h':
    case '?':
        t->help = !t->help;
        break;
    case ' ':
        t->paused = !t->paused;
        break;
    case '+':
        t->seconds = t->seconds * 2 > SLOWEST ? SLOWEST : t->seconds * 2;
        break;
    case '-':
        t->seconds = t->seconds / 2 < FASTEST ? FASTEST : t->seconds / 2;
        break;
    case KEY_DOWN:
    case 'j':
        scroll_by(t, 1);
        break;
    case KEY_UP:
    case 'k':
        scroll_by(t, -1);
        break;
    case KEY_NPAGE:
        scroll_by(t, page);
        break;
    case KEY_PPAGE:
        scroll_by(t, -page);
        break;
    case KEY_HOME:
        t->scroll = 0;
        break;
    default: /* also KEY_RESIZE: ncurses knows the new size */
        break;
    }
    return true;
}

static void colours(void)
{
    start_color();
    use_default_colors();
    init_pair(TOP_GOOD, COLOR_GREEN, -1);
    init_pair(TOP_WARNING, COLOR_YELLOW, -1);
    init_pair(TOP_BAD, COLOR_RED, -1);
}

int top_screen(struct top *t)
{
    struct sigaction sa = {.sa_handler = on_signal};
    const char *term = getenv("TERM");
    SCREEN *screen;

    setlocale(LC_ALL, "");
    screen = newterm(NULL, stdout, stdin);
    if (!screen) {
        fprintf(stderr,
                "trib-top: found TERM \"%s\", expected a terminal that ncurses knows (--batch "
                "prints)\n",
                term ? term : "");
        return -ENOTTY;
    }
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    if (has_colors())
        colours();
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, true);
    for (int key = ERR; !stop; key = getch()) {
        if (key != ERR && !take_key(t, key))
            break;
        if (key == ERR && !t->paused)
            live_look(&t->live);
        top_screen_draw(t);
        timeout((int)(t->seconds * 1000));
    }
    endwin();
    delscreen(screen);
    return 0;
}
#endif
