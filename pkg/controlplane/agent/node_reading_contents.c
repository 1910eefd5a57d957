/* What the files of the rows have, and what belongs together. */
#include "controlplane/agent/node_reading_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/kubeconfig_file.h"
#include "controlplane/agent/pairs.h"

/* A row's file, and the certificates of it. */
struct source {
    const struct cr_host_file *file; /* NULL: the row is no file of the node */
    char *embedded;                  /* owned, no key: what a kubeconfig embeds */
    struct cr_pem_input pem;         /* borrowed from either */
};

/* One kubeconfig is in many rows, and read once. */
struct parsed {
    const struct cr_host_file *file;
    struct cr_kubeconfig_file config;
    struct cr_error err; /* kind None: config is set */
};

struct contents {
    struct cr_node_sight *sight;
    struct cr_node_look *look;
    size_t len;
    struct source *sources;
    size_t *partners;
    struct parsed *kubeconfigs; /* owned */
    size_t kubeconfigs_len;
};

static void contents_dispose(struct contents *c)
{
    for (size_t i = 0; i < c->len; i++)
        free(c->sources[i].embedded);
    for (size_t i = 0; i < c->kubeconfigs_len; i++)
        cr_kubeconfig_file_dispose(&c->kubeconfigs[i].config);
    free(c->sources);
    free(c->partners);
    free(c->kubeconfigs);
}
CR_DEFINE_DISPOSE(contents, struct contents, contents_dispose)

/* --- the files --- */

static bool has_file(const struct contents *c, size_t i)
{
    const struct cr_node_parameter *row = &c->look->parameters.items[i];
    return row->place == CR_NODE_PLACE_HOST || row->place == CR_NODE_PLACE_EMBEDDED;
}

/* A row and its partner at one moment; one that another row has read before stays as that one found it. */
static void read_file(const struct contents *c, size_t i)
{
    const char *hosts[2] = {c->look->parameters.items[i].host};
    const struct cr_host_file *files[2] = {0};
    size_t partner = c->partners[i];
    bool both = partner != CR_NODE_NO_PARTNER && has_file(c, partner);
    if (both)
        hosts[1] = c->look->parameters.items[partner].host;
    cr_host_files_read_together(&c->sight->files, hosts, both ? 2 : 1, files);
    c->sources[i].file = files[0];
    if (both)
        c->sources[partner].file = files[1];
}

static void note_file(struct cr_node_content *content, const struct cr_host_file *file)
{
    content->exists = file->exists;
    if (!file->exists)
        return;
    content->device = file->way.end.st_dev;
    content->inode = file->way.end.st_ino;
    content->ctime_ms = file->way.ctime_ms;
}

/* --- what kubeconfigs embed --- */

/* Borrowed, until the next one. */
static const struct parsed *parse(struct contents *c, const struct cr_host_file *file)
{
    for (size_t i = 0; i < c->kubeconfigs_len; i++)
        if (c->kubeconfigs[i].file == file)
            return &c->kubeconfigs[i];
    c->kubeconfigs = cr_reallocarray(c->kubeconfigs, c->kubeconfigs_len + 1, sizeof *c->kubeconfigs);
    struct parsed *one = &c->kubeconfigs[c->kubeconfigs_len++];
    *one = (struct parsed){.file = file};
    if (!cr_kubeconfig_file_read(file->host, cr_buf_text(&file->text), file->text.len, &one->config, &one->err))
        one->config = (struct cr_kubeconfig_file){0};
    return one;
}

static const char *embedded_in(const struct cr_kubeconfig_file *config, const struct cr_node_parameter *row)
{
    if (cr_streq(row->parameter, "kubeconfig client-key"))
        return NULL;
    return row->role == CR_ROLE_SERVER_CA ? config->ca.pem : config->certificate.pem;
}

/* No more can be said of a kubeconfig that embeds nothing, and of an embedded key, than what it is. */
static void read_kubeconfig(struct contents *c, size_t i)
{
    const struct cr_node_parameter *row = &c->look->parameters.items[i];
    struct cr_node_material *material = &c->look->contents[i].material;
    struct source *source = &c->sources[i];
    const struct parsed *parsed = parse(c, source->file);
    if (parsed->err.kind) {
        material->problem = cr_strdup(parsed->err.text);
        return;
    }
    source->embedded = cr_strdup_or_null(embedded_in(&parsed->config, row));
    if (source->embedded) {
        source->pem = (struct cr_pem_input){source->embedded, strlen(source->embedded)};
        cr_node_material_read(source->pem.data, source->pem.len, row->role, "", material);
        return;
    }
    material->kind = row->role == CR_ROLE_SERVER_CA ? CR_NODE_FILE_TRUST : CR_NODE_FILE_LEAF;
}

static bool is_kubeconfig(const struct cr_node_parameter *row)
{
    return row->place == CR_NODE_PLACE_EMBEDDED || cr_ends_with(row->parameter, "kubeconfig");
}

/* --- each row --- */

static void read_material(struct contents *c, size_t i)
{
    const struct cr_node_parameter *row = &c->look->parameters.items[i];
    struct source *source = &c->sources[i];
    struct cr_node_material *material = &c->look->contents[i].material;
    const struct cr_host_file *file = source->file;
    if (!file)
        material->problem = cr_strdup(row->why);
    else if (file->err.kind)
        material->problem = cr_strdup(file->err.text);
    else if (is_kubeconfig(row))
        read_kubeconfig(c, i);
    else {
        source->pem = (struct cr_pem_input){cr_buf_text(&file->text), file->text.len};
        cr_node_material_read(source->pem.data, source->pem.len, row->role, row->parameter, material);
    }
}

static void check_fit(const struct contents *c, size_t i)
{
    size_t k = c->partners[i];
    struct cr_node_content *contents = c->look->contents;
    /* Once for both. */
    if (k == CR_NODE_NO_PARTNER || k < i || cr_node_material_fits(&contents[i].material, &contents[k].material))
        return;
    cr_strset(&contents[i].material.problem, "the key does not belong to the certificate");
    cr_strset(&contents[k].material.problem, "the key does not belong to the certificate");
}

/* --- CAs, and which certificate is of which --- */

static void collect_cas(const struct contents *c)
{
    struct cr_node_look *look = c->look;
    for (size_t i = 0; i < c->len; i++) {
        struct cr_error err = {0};
        const struct source *source = &c->sources[i];
        if (look->contents[i].material.kind != CR_NODE_FILE_TRUST || !source->file || !source->pem.data ||
            cr_ca_set_add(look->cas, &source->pem, NULL, &err))
            continue;
        cr_node_sight_trouble(c->sight, "%s: %s: %s", look->parameters.items[i].component, source->file->host,
                              err.text);
    }
    cr_ca_set_sort(look->cas);
}

static void find_issuers(const struct contents *c, size_t i)
{
    struct cr_node_content *content = &c->look->contents[i];
    const struct cr_ca_set *cas = c->look->cas;
    struct cr_chain_facts facts;
    struct cr_error err = {0};
    if (content->material.kind != CR_NODE_FILE_LEAF || !content->material.prints.len)
        return;
    cr_autofree bool *verifies = cr_calloc(cr_ca_set_len(cas) + 1, sizeof *verifies);
    if (!cr_ca_set_verify(cas, &c->sources[i].pem, c->sight->now_ms, &facts, verifies, &err)) {
        if (!content->material.problem)
            content->material.problem = cr_strdup(err.text);
        return;
    }
    for (size_t k = 0; k < cr_ca_set_len(cas); k++)
        if (verifies[k])
            cr_strvec_add(&content->issuers, cr_ca_set_facts(cas, k)->fingerprint);
}

/* --- two names of one file --- */

static bool same_file(const struct contents *c, size_t i, size_t k)
{
    const struct cr_node_content *a = &c->look->contents[i];
    const struct cr_node_content *b = &c->look->contents[k];
    return a->exists && b->exists && a->device == b->device && a->inode == b->inode &&
           c->look->parameters.items[i].place == c->look->parameters.items[k].place;
}

/* Finds by the files themselves what parameters (controlplane/agent/parameters.h) find by name: a shared signing and
 * trust file, and the kubelet's own pair, whatever name it has. */
static void mark_same(const struct contents *c, size_t i)
{
    struct cr_node_parameter *one = &c->look->parameters.items[i];
    bool signs = cr_node_parameter_signs(one);
    for (size_t k = 0; (signs || one->own) && k < c->len; k++) {
        struct cr_node_parameter *other = &c->look->parameters.items[k];
        if (k == i || !same_file(c, i, k))
            continue;
        if (signs && cr_node_parameter_is_bundle(other))
            one->signs_and_trusts = other->signs_and_trusts = true;
        if (one->own && cr_streq(one->component, other->component) && one->role == other->role)
            other->own = true;
    }
}

void cr_node_sight_contents(struct cr_node_sight *sight)
{
    struct cr_node_look *look = sight->out;
    CR_CLEANUP(contents) struct contents c = {.sight = sight, .look = look, .len = look->parameters.len};
    c.sources = cr_calloc(c.len + 1, sizeof *c.sources);
    c.partners = cr_calloc(c.len + 1, sizeof *c.partners);
    look->contents = cr_calloc(c.len + 1, sizeof *look->contents);
    cr_node_pairs_find(&look->parameters, c.partners);
    for (size_t i = 0; i < c.len; i++)
        if (has_file(&c, i) && !c.sources[i].file)
            read_file(&c, i);
    for (size_t i = 0; i < c.len; i++) {
        if (c.sources[i].file)
            note_file(&look->contents[i], c.sources[i].file);
        read_material(&c, i);
    }
    for (size_t i = 0; i < c.len; i++)
        check_fit(&c, i);
    collect_cas(&c);
    for (size_t i = 0; i < c.len; i++) {
        find_issuers(&c, i);
        mark_same(&c, i);
    }
}
