/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the top level of a conf file; conf_*.c and template*.c read its sections.
 */
#include "system/input.h"
#include "base/printable.h"
#include "base/secret.h"
#include "fabric/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a)       (sizeof(a) / sizeof((a)[0]))
#define MAX_FILE     (FAB_MAX_HOSTS > 4096 ? 64u << 20 : 4u << 20)
#define MAX_DILATION 1000000000

struct top_keys {
    char name[FAB_NAME];
    uint32_t slots, multicast, ecmp, cut_through;
};

static const char *const ecmp_names[] = {"hash", "balanced", NULL};

static const struct key top_keys[] = {
    /* Of the fabric and of its run directory. Default: the file's stem. */
    PLAIN_KEY("name", KEY_NAME, offsetof(struct top_keys, name), NULL),
    /* `"auto"`, or how many times slower than real time the fabric's clock runs, 1 to 1000000000;
     * 1 with ports to the outside. */
    OWN_KEY_FROM("dilation", "auto"),
    /* Path MTU: 256, 512, 1024, 2048 or 4096. */
    OWN_KEY_FROM("mtu", "4096"),
    /* `"hash"` by flow, or `"balanced"` by the source's place: no collisions in a ring or any
     * other shift. */
    CHOICE_KEY("ecmp", offsetof(struct top_keys, ecmp), ecmp_names, "hash"),
    /* Of every switch; `"cut-through"` begins to send a frame on when its header has arrived. */
    CHOICE_KEY("forwarding", offsetof(struct top_keys, cut_through), conf_forwardings,
               "store-and-forward"),
    /* Processes that can share a host's NIC; unused slots cost nothing. */
    RANGE_KEY("slots_per_host", KEY_UINT, offsetof(struct top_keys, slots), 1, FAB_MAX_SLOTS, "64"),
    /* Multicast groups that a port of a host may be in, and one process of it half as many; a
     * fabric has room for 1,024 groups. */
    RANGE_KEY("multicast_per_host", KEY_UINT, offsetof(struct top_keys, multicast), 1,
              FAB_MAX_MULTICAST, "128"),
    /* Group of quotas of every switch's aggregation node: `{ groups = 64; slots = 16384; window =
     * 256; }`, or `false`. Default: `false`. */
    OWN_KEY("reduce"),
    /* `true`, or a group of parameters: hosts reduce their rate when they are notified of
     * congestion. Default: `false`. */
    OWN_KEY("dcqcn"),
    /* A queue of a switch that is paused without progress for this time, from 1 us to 60 s, is
     * flushed: `"200ms"`. Default: off. */
    OWN_KEY("pfc_watchdog"),
    /* Group of the time that GPUs, HCAs and switches take for a message or frame, as `{ gpu =
     * "5us"; hca = "100ns"; switch = "150ns"; }`, and of what a path costs. Default: no time. */
    OWN_KEY("costs"),
    /* Group of windows and timeouts of queue pairs, as `{ window = 512; ack_timeout = "1ms";
     * retry_count = 7; }`. Default: from the fabric. */
    OWN_KEY("transport"),
    /* Group of the defaults of all links. */
    OWN_KEY("link_defaults"),
    /* Template: hosts, leaves and spines; a third tier by `pods`, `cores`, `core_groups` and
     * `core_link`. */
    OWN_KEY("leaf_spine"),
    /* Template: hosts on one switch. */
    OWN_KEY("single_switch"),
    /* Template: a cable between every two hosts. */
    OWN_KEY("full_mesh"),
    /* Template of GPU nodes. */
    OWN_KEY("gpu_nodes"),
    /* The network between GPU nodes. */
    OWN_KEY("rails"),
    /* List of single nodes, beside a template or without one. */
    OWN_KEY("nodes"),
    /* List of single links, beside a template or without one. */
    OWN_KEY("links"),
    /* Which machine runs which nodes: a list of `{ name; address; port; nodes = ( ... ); ports = (
     * ... ); }`. Default: one machine runs all. */
    OWN_KEY("machines"),
    /* Secret of those machines, 16 to 127 characters; results and messages hide it, `trib plan
     * --no-secrets` prints a conf without it. */
    OWN_KEY("trunk_key"),
    /* `"one"`, `"per_node"`, or a list of `{ name; nodes = ( ... ); }`. Default: `"one"`. */
    OWN_KEY("processes"),
    /* Who beside root may use which hosts of a service's fabric: a list of `{ user or group; hosts
     * = ( "h0", ... ) or "all"; }`. Default: root alone. */
    OWN_KEY("access"),
};

static void read_dilation(struct build *b, const config_setting_t *s)
{
    const char *text = config_setting_get_string(s);
    int type = config_setting_type(s);
    long long v =
        type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64 ? config_setting_get_int64(s) : 0;

    if (text && !strcmp(text, keys_initial_of(top_keys, LEN(top_keys), "dilation")))
        b->f->dilation = 0;
    else if (v >= 1 && v <= MAX_DILATION)
        b->f->dilation = (uint32_t)v;
    else
        keys_expected(b, s, "\"auto\" or an integer from 1 to 1000000000");
}

static void read_mtu(struct build *b, const config_setting_t *s)
{
    int v = config_setting_type(s) == CONFIG_TYPE_INT ? config_setting_get_int(s) : 0;

    if (v >= 256 && v <= 4096 && !(v & (v - 1)))
        b->f->mtu = (uint32_t)v;
    else
        keys_expected(b, s, "256, 512, 1024, 2048 or 4096");
}

/* A misspelt section hides its nodes or links: unknown names are then not reported. */
static void note_lost_sections(struct build *b, config_setting_t *root)
{
    for (int i = 0; i < config_setting_length(root); i++) {
        const config_setting_t *s = config_setting_get_elem(root, (unsigned)i);
        unsigned k = 0;

        while (k < LEN(top_keys) && strcmp(top_keys[k].name, config_setting_name(s)))
            k++;
        if (k == LEN(top_keys) && config_setting_is_aggregate(s))
            b->nodes_unknown = b->graph_broken = true;
    }
}

static void read_scalars(struct build *b, config_setting_t *root)
{
    struct fabric *f = b->f;
    struct top_keys k = {.name = ""};
    config_setting_t *s;

    keys_default_name(b->path, k.name);
    keys_initial(top_keys, LEN(top_keys), &k);
    keys_read(b, root, top_keys, LEN(top_keys), &k);
    note_lost_sections(b, root);
    memcpy(f->name, k.name, sizeof(f->name));
    f->slots_per_host = (uint16_t)k.slots;
    f->multicast_per_host = (uint16_t)k.multicast;
    f->ecmp = k.ecmp ? FAB_ECMP_BALANCED : FAB_ECMP_HASH;
    b->cut_through_default = k.cut_through;
    f->mtu = (uint32_t)atoi(keys_initial_of(top_keys, LEN(top_keys), "mtu"));
    s = config_setting_get_member(root, "mtu");
    if (s)
        read_mtu(b, s);
    s = config_setting_get_member(root, "dilation");
    if (s)
        read_dilation(b, s);
}

static void conf_gpus(struct build *b, config_setting_t *s)
{
    conf_gpu_nodes(b, s, config_setting_get_member(config_setting_parent(s), "rails"));
}

static const struct template
{
    const char *name;
    void (*read)(struct build * b, config_setting_t * s);
}
templates[] = {{"leaf_spine", conf_leaf_spine},
               {"single_switch", conf_single_switch},
               {"full_mesh", conf_full_mesh},
               {"gpu_nodes", conf_gpus}};

/* Reads the template; at most one, because templates use the same names of nodes. */
static void read_template(struct build *b, config_setting_t *root)
{
    config_setting_t *rails = config_setting_get_member(root, "rails");
    const struct template *first = NULL;

    for (unsigned i = 0; i < LEN(templates); i++) {
        config_setting_t *s = config_setting_get_member(root, templates[i].name);

        if (s && first)
            build_error(b, (int)config_setting_source_line(s),
                        "%s: found a second template, expected %s or %s", templates[i].name,
                        first->name, templates[i].name);
        else if (s) {
            first = &templates[i];
            first->read(b, s);
        }
    }
    if (rails && !config_setting_get_member(root, "gpu_nodes"))
        build_error(b, (int)config_setting_source_line(rails),
                    "rails: found it without gpu_nodes, expected the nodes that it joins");
}

static void read_nodes_and_links(struct build *b, config_setting_t *root)
{
    config_setting_t *nodes = config_setting_get_member(root, "nodes");
    config_setting_t *links = config_setting_get_member(root, "links");

    read_template(b, root);
    if (nodes)
        conf_nodes(b, nodes);
    if (links)
        conf_links(b, links);
    conf_links_complete(b);
}

/* Checks ports to the outside: hosts outside run in real time. */
static void check_external(struct build *b)
{
    for (unsigned i = 0; i < b->n_links; i++) {
        if (!b->links[i].external[0])
            continue;
        b->has_external = true;
        if (b->f->dilation > 1) {
            build_error(b, b->links[i].line,
                        "port: found dilation %u, expected 1 or \"auto\" with ports to the outside",
                        b->f->dilation);
            return;
        }
    }
    if (b->has_external)
        b->f->dilation = 1;
}

static void read_conf(struct build *b, config_setting_t *root)
{
    config_setting_t *s;
    unsigned before;

    link_props_init(&b->link_defaults);
    read_scalars(b, root);
    s = config_setting_get_member(root, "reduce");
    if (s)
        conf_reduce(b, s, &b->reduce_default);
    conf_costs(b, config_setting_get_member(root, "costs"));
    conf_transport(b, config_setting_get_member(root, "transport"));
    before = b->errs->total;
    s = config_setting_get_member(root, "link_defaults");
    if (s)
        conf_link_props(b, s, &b->link_defaults);
    if (b->errs->total > before)
        link_props_placeholder(&b->link_defaults);
    read_nodes_and_links(b, root);
    conf_congestion(b, root);
    check_external(b);
    for (unsigned i = 0; i < b->f->n_nodes; i++)
        b->f->nodes[i].proc = b->f->nodes[i].machine = FAB_NONE;
    build_report_over(b);
    conf_machines(b, root);
    conf_access(b, root);
    s = config_setting_get_member(root, "processes");
    if (s)
        conf_processes(b, s);
    if (!b->graph_broken && !b->f->n_hosts && !b->has_external) {
        build_error(b, 0,
                    "found no hosts, expected a template (leaf_spine, gpu_nodes, ...), or nodes "
                    "and links");
        b->graph_broken = true;
    }
}

/* Refuses @include: a fabric is one file, because it is copied to the run directory. */
static bool has_include(struct build *b, const char *text)
{
    int line = 1;

    for (const char *p = text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL, line++) {
        p += strspn(p, " \t");
        if (!strncmp(p, "@include", 8)) {
            build_error(b, line, "found @include, expected a file that is complete by itself");
            return true;
        }
    }
    return false;
}

/* libconfig stops at the first syntax error, often one line too late: shows the text there. */
static void syntax_error(struct build *b, const char *text, const config_t *c)
{
    int line = config_error_line(c);
    const char *why = config_error_text(c);
    bool secret = secret_named(text);
    size_t shown;

    for (int i = 1; i < line && text; i++) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    if (text)
        text += strspn(text, " \t");
    if (!text || !text[strspn(text, " \t\r\n")]) {
        build_error(b, line, "%s: found the end of the file, expected a ; or } before it",
                    why ? why : "syntax error");
        return;
    }
    shown = strcspn(text, "\r\n");
    if (secret)
        build_error(
            b, line,
            "%s: found what is not shown, since the file has a secret, expected libconfig's "
            "name = value;",
            why ? why : "syntax error");
    else
        build_error(
            b, line,
            "%s: found \"%.*s\", expected libconfig's name = value; (a mistake can also be in "
            "the line before)",
            why ? why : "syntax error", (int)(shown < 80 ? shown : 80), text);
}

static void build_stages(struct build *b)
{
    static void (*const stages[])(struct build *) = {topology_build, domain_build,   address_build,
                                                     routes_build,   reach_build,    tree_build,
                                                     procs_build,    transport_build};

    ports_build(b);
    for (unsigned i = 0; i < LEN(stages) && !b->graph_broken && !b->no_memory; i++)
        stages[i](b);
}

bool conf_syntax(struct build *b, const char *text, config_t *c)
{
    if (strlen(text) > MAX_FILE) {
        build_error(b, 0, "found a file above %u bytes, expected a smaller one", MAX_FILE);
        return false;
    }
    if (!strncmp(text, "\xef\xbb\xbf", 3)) /* editors put a byte order mark before UTF-8 */
        text += 3;
    if (has_include(b, text))
        return false;
    config_init(c);
    if (config_read_string(c, text) == CONFIG_TRUE)
        return true;
    syntax_error(b, text, c);
    config_destroy(c);
    return false;
}

/* Refuses control characters: texts become file names, lines of lists, and output on terminals. */
static void refuse_control(struct build *b, const config_setting_t *s)
{
    if (config_setting_type(s) == CONFIG_TYPE_STRING && !printable(config_setting_get_string(s)))
        keys_expected(b, s, "a line of text without control characters");
    for (int i = 0; config_setting_is_aggregate(s) && i < config_setting_length(s); i++)
        refuse_control(b, config_setting_get_elem(s, (unsigned)i));
}

bool conf_parse(struct build *b, const char *text, config_t *c)
{
    unsigned before = b->errs->total;

    if (!conf_syntax(b, text, c))
        return false;
    refuse_control(b, config_root_setting(c));
    if (b->errs->total == before)
        return true;
    config_destroy(c);
    return false;
}

/* Whether it is another kind of file of conf/, given by mistake. */
static bool is_other_kind(struct build *b, const config_t *c)
{
    static const struct {
        const char *key, *what;
    } kinds[] = {{"faults", "a fault plan, expected a fabric: trib sim CONF --faults FILE"},
                 {"training", "a workload, expected a fabric: trib sim CONF --workload FILE"}};

    for (unsigned i = 0; i < LEN(kinds); i++) {
        const config_setting_t *s = config_lookup(c, kinds[i].key);

        if (!s || !config_setting_is_aggregate(s))
            continue;
        build_error(b, (int)config_setting_source_line(s), "found %s", kinds[i].what);
        return true;
    }
    return false;
}

static void build_text(struct build *b, const char *text)
{
    config_t c;

    if (!conf_parse(b, text, &c))
        return;
    if (!is_other_kind(b, &c)) {
        read_conf(b, config_root_setting(&c));
        build_stages(b);
    }
    config_destroy(&c);
}

struct fabric *fabric_load_string(const char *text, const char *path, struct fab_errors *errs)
{
    struct fab_errors *own = errs ? NULL : malloc(sizeof(*own));
    struct build b = {.errs = errs ? errs : own, .path = path ? path : "fabric"};
    bool failed;

    if (!b.errs)
        return NULL;
    b.errs->n = b.errs->total = 0;
    b.f = calloc(1, sizeof(*b.f));
    if (b.f) {
        snprintf(b.f->path, sizeof(b.f->path), "%s", b.path);
        build_text(&b, text);
    }
    if (!b.f || b.no_memory)
        build_error(&b, 0, "found too little memory, expected enough for this fabric");
    fab_errors_sort(b.errs);
    failed = build_failed(&b);
    free(b.links);
    free(b.node_line);
    free(b.want_ports);
    free(b.name_slot);
    free(own);
    if (failed) {
        fabric_free(b.f);
        return NULL;
    }
    return b.f;
}

char *conf_text(const char *path, const char *what, struct fab_errors *errs)
{
    struct build b = {.errs = errs, .path = path};
    char why[INPUT_WHY];
    size_t n;
    char *text = input_text(path, MAX_FILE, &n, why);

    if (!text) {
        build_error(&b, 0, "found no readable file (%s), expected a %s", why, what);
        return NULL;
    }
    if (strlen(text) == n)
        return text;
    build_error(&b, 0, "found a byte of value 0, expected a text file");
    free(text);
    return NULL;
}

struct fabric *fabric_load(const char *path, struct fab_errors *errs)
{
    struct fab_errors *own = errs ? NULL : malloc(sizeof(*own));
    struct fab_errors *e = errs ? errs : own;
    struct fabric *f = NULL;
    char *text;

    if (!e)
        return NULL;
    e->n = e->total = 0;
    text = conf_text(path, "conf file", e);
    if (text)
        f = fabric_load_string(text, path, e);
    free(text);
    free(own);
    return f;
}
