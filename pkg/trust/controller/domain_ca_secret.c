/* The domain's own CA and its successor: read, made, cross-signed, promoted. */
#include "base/alloc.h"
#include "base/strings.h"
#include "trust/controller/domain_objects_internal.h"
#include "kube/object.h"
#include "pki/cross_sign.h"

#define NEXT "next"

enum { CANARY_MS = 10 * 60 * 1000 };

void cr_held_ca_dispose(struct cr_held_ca *ca)
{
    cr_authority_free(ca->authority);
    free(ca->problem);
    *ca = (struct cr_held_ca){0};
}

/* --- read --- */

static void break_ca(struct cr_held_ca *ca, char *problem)
{
    free(ca->problem);
    ca->problem = problem;
    ca->state = CR_DOMAIN_CA_BROKEN;
    cr_authority_free(cr_steal(&ca->authority));
}

/* A CA that cannot sign any more still counts as at hand, because what it signed is in use. */
static void hold(struct cr_domain_objects *objects, const struct cr_stored_leaf *stored, const char *label,
                 struct cr_held_ca *out)
{
    struct cr_error err = {0};
    const struct cr_pem_input certificate = cr_entry_pem(&stored->certificate);
    const struct cr_pem_input key = cr_entry_pem(&stored->key);
    const struct cr_pem_input trust = cr_entry_pem(&stored->trust);
    bool anchored = cr_ca_set_add_anchor(objects->set, &certificate, &trust, out->anchor, &err);
    out->authority = anchored ? cr_authority_read(&certificate, &key, objects->now_ms, &err) : NULL;
    if (out->authority)
        out->state = CR_DOMAIN_CA_USABLE;
    else
        break_ca(out, cr_asprintf("%s: %s", label, err.text));
}

static void read_current(struct cr_domain_objects *objects)
{
    struct cr_held_ca *current = &objects->current;
    if (!objects->own_ns) {
        break_ca(current, cr_strdup("certroll knows no namespace of its own, where the CA's Secret would be "
                                    "(--operator-namespace)"));
        return;
    }
    if (!objects->ca_secret)
        return;
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf stored = {0};
    cr_autofree char *label = cr_domain_object_label(&cr_res_secrets, objects->own_ns, objects->domain->ca.ca_secret);
    cr_stored_leaf_read(objects->ca_secret, &stored);
    hold(objects, &stored, label, current);
}

/* The CA Secret belongs to another program: it is used, but not replaced. Owned. */
static char *refuse_renewal(const struct cr_domain_objects *objects)
{
    if (!objects->ca_secret || cr_domain_owns(objects, objects->ca_secret))
        return NULL;
    return cr_asprintf("Secret %s/%s is not written by this domain, and so not replaced: let that be done "
                       "with the annotation " CR_DOMAIN_ANNOTATION ": %s",
                       objects->own_ns, objects->domain->ca.ca_secret, objects->title);
}

static void read_next(struct cr_domain_objects *objects)
{
    struct cr_held_ca *next = &objects->next;
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf stored = {0};
    cr_autofree char *label =
        cr_asprintf("the next CA in Secret %s/%s", cr_or_empty(objects->own_ns), objects->staging_name);
    cr_domain_staging_leaf(objects, NEXT, &stored);
    if (stored.certificate.found || stored.key.found)
        hold(objects, &stored, label, next);
    if (next->state == CR_DOMAIN_CA_USABLE && strcmp(next->anchor, objects->current.anchor) == 0)
        cr_held_ca_dispose(next); /* promoted already */
    if (objects->staging && !cr_domain_staging_is_ours(objects))
        break_ca(next, cr_asprintf("Secret %s/%s is not this domain's staging, though it has its name: delete it",
                                   objects->own_ns, objects->staging_name));
}

void cr_domain_authority_read(struct cr_domain_objects *objects)
{
    if (objects->domain->authority != CR_AUTHORITY_ISSUE)
        return;
    read_current(objects);
    read_next(objects);
}

/* --- viewed --- */

static char *try_cross_sign(const struct cr_domain_objects *objects)
{
    if (!objects->domain->ca.cross_sign || !objects->next.authority)
        return NULL;
    if (!objects->current.authority)
        return cr_strdup(objects->current.problem ? objects->current.problem : "there is no old CA any more");
    struct cr_error err = {0};
    CR_CLEANUP(cr_issued) struct cr_issued issued = {0};
    const char *pem = cr_authority_certificate(objects->next.authority);
    const struct cr_pem_input fresh = {pem, strlen(pem)};
    return cr_cross_sign(objects->current.authority, &fresh, objects->now_ms, &issued, &err) ? NULL
                                                                                             : cr_strdup(err.text);
}

void cr_domain_authority_view(struct cr_domain_objects *objects, struct cr_domain_authority_view *out)
{
    free(objects->cannot_cross_sign);
    free(objects->cannot_renew);
    free(objects->next_token);
    objects->cannot_renew = refuse_renewal(objects);
    objects->cannot_cross_sign = try_cross_sign(objects);
    objects->next_token = objects->next.state == CR_DOMAIN_CA_USABLE
                              ? cr_strdup_or_null(cr_obj_annotation(objects->staging, CR_DOMAIN_TOKEN))
                              : NULL;
    *out = (struct cr_domain_authority_view){.current = objects->current.state,
                                             .next = objects->next.state,
                                             .current_problem = objects->current.problem,
                                             .next_problem = objects->next.problem,
                                             .current_ca = cr_ca_set_find(objects->set, objects->current.anchor),
                                             .next_ca = cr_ca_set_find(objects->set, objects->next.anchor),
                                             .next_token = objects->next_token,
                                             .cannot_renew = objects->cannot_renew,
                                             .cannot_cross_sign = objects->cannot_cross_sign};
}

const struct cr_held_ca *cr_domain_authority_of(const struct cr_domain_objects *objects, size_t ca)
{
    const struct cr_held_ca *const held[] = {&objects->next, &objects->current};
    for (size_t i = 0; i < cr_array_len(held); i++)
        if (held[i]->authority && cr_ca_set_find(objects->set, held[i]->anchor) == ca)
            return held[i];
    return NULL;
}

/* --- made --- */

/* A CA that must sign its successor needs a path length that allows a CA below it (docs/pki.md, "Cross-signing"). */
static bool make_ca(const struct cr_domain_issue_ca *spec, int64_t now_ms, struct cr_stored_leaf *out,
                    struct cr_error *err)
{
    const struct cr_authority_spec wanted = {spec->common_name, spec->life.duration_ms, spec->cross_sign ? 1 : 0};
    *out = (struct cr_stored_leaf){.certificate.found = true, .key.found = true};
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = cr_private_key_new(&spec->key, err);
    CR_CLEANUP(cr_authority)
    struct cr_authority *authority = key ? cr_authority_new(&wanted, key, now_ms, err) : NULL;
    if (!authority || !cr_private_key_write(key, &out->key.bytes, err))
        return cr_error_wrap(err, "no CA can be made");
    cr_buf_puts(&out->certificate.bytes, cr_authority_certificate(authority));
    return true;
}

static void put_pair(struct cr_json *data, const char *certificate, const char *key,
                     const struct cr_stored_leaf *stored)
{
    cr_entry_put(data, certificate, cr_buf_text(&stored->certificate.bytes), stored->certificate.bytes.len);
    cr_entry_put(data, key, cr_buf_text(&stored->key.bytes), stored->key.bytes.len);
}

/* ca.crt is what cert-manager and others that use such a Secret look for. */
static bool put_ca_secret(struct cr_domain_objects *objects, const struct cr_stored_leaf *stored, struct cr_error *err)
{
    struct cr_json *body = cr_json_new_object();
    struct cr_json *data = cr_json_object_in(body, "data");
    cr_domain_mark(objects, body);
    if (!objects->ca_secret)
        cr_json_set_string(body, "type", "kubernetes.io/tls");
    put_pair(data, "tls.crt", "tls.key", stored);
    cr_entry_put(data, "ca.crt", cr_buf_text(&stored->certificate.bytes), stored->certificate.bytes.len);
    return cr_domain_put(objects, &cr_res_secrets, objects->own_ns, objects->domain->ca.ca_secret, body,
                         &objects->ca_secret, err);
}

static bool check_namespace(const struct cr_domain_objects *objects, struct cr_error *err)
{
    return objects->own_ns || cr_error_set(err, CR_ERR_INVALID,
                                           "certroll knows no namespace of its own for the CA of this domain "
                                           "(--operator-namespace)");
}

bool cr_domain_objects_first_ca(struct cr_domain_objects *objects, int64_t now_ms, struct cr_error *err)
{
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf stored = {0};
    struct cr_error failed = {0};
    if (objects->ca_secret)
        return true;
    if (!check_namespace(objects, err) || !make_ca(&objects->domain->ca, now_ms, &stored, err))
        return false;
    if (put_ca_secret(objects, &stored, &failed))
        return true;
    if (failed.kind == CR_ERR_CONFLICT)
        return cr_domain_get(objects, &cr_res_secrets, objects->own_ns, objects->domain->ca.ca_secret,
                             &objects->ca_secret, err);
    *err = failed;
    return false;
}

static bool has_next(const struct cr_domain_objects *objects)
{
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf stored = {0};
    cr_domain_staging_leaf(objects, NEXT, &stored);
    return stored.certificate.found && stored.key.found;
}

/* A next CA that is there already is kept, unless it is broken, distrusted, or in the CA Secret by now; then it is
 * replaced. */
bool cr_domain_objects_stage_next_ca(struct cr_domain_objects *objects, const char *token, int64_t now_ms,
                                     struct cr_error *err)
{
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf stored = {0};
    struct cr_error failed = {0};
    cr_autofree char *refused = refuse_renewal(objects);
    if (refused)
        return cr_error_set(err, CR_ERR_INVALID, "%s", refused);
    bool distrusted = cr_domain_distrusts(objects->domain, objects->next.anchor);
    if (has_next(objects) && objects->next.state == CR_DOMAIN_CA_USABLE && !distrusted)
        return true;
    if (!make_ca(&objects->domain->ca, now_ms, &stored, err))
        return false;
    struct cr_json *data = cr_json_new_object();
    struct cr_json *annotations = cr_json_new_object();
    put_pair(data, NEXT ".crt", NEXT ".key", &stored);
    if (token)
        cr_json_set_string(annotations, CR_DOMAIN_TOKEN, token);
    else if (objects->staging)
        cr_json_set(annotations, CR_DOMAIN_TOKEN, cr_json_new_null());
    bool created = !objects->staging;
    if (cr_domain_staging_put(objects, data, annotations, &failed))
        return true;
    if (created && failed.kind == CR_ERR_CONFLICT)
        return cr_domain_get(objects, &cr_res_secrets, objects->own_ns, objects->staging_name, &objects->staging, err);
    *err = failed;
    return false;
}

bool cr_domain_objects_promote_ca(struct cr_domain_objects *objects, struct cr_error *err)
{
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf stored = {0};
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf current = {0};
    cr_autofree char *refused = refuse_renewal(objects);
    cr_domain_staging_leaf(objects, NEXT, &stored);
    cr_stored_leaf_read(objects->ca_secret, &current);
    if (refused)
        return cr_error_set(err, CR_ERR_INVALID, "%s", refused);
    if (!stored.certificate.found || !stored.key.found)
        return cr_error_set(err, CR_ERR_INVALID, "Secret %s/%s has no next CA to be promoted",
                            cr_or_empty(objects->own_ns), objects->staging_name);
    if (cr_streq(cr_buf_text(&stored.certificate.bytes), cr_buf_text(&current.certificate.bytes)))
        return true;
    return put_ca_secret(objects, &stored, err);
}

/* --- canaries --- */

bool cr_domain_objects_canary(const struct cr_domain_objects *objects, size_t ca, int64_t now_ms,
                              struct cr_buf *certificate, struct cr_buf *key, struct cr_error *err)
{
    static const struct cr_key_spec ecdsa = {CR_KEY_ECDSA, 256};
    static const struct cr_leaf_spec spec = {
        .common_name = "certroll-canary", .usages = CR_LEAF_CLIENT, .duration_ms = CANARY_MS};
    const struct cr_held_ca *held = cr_domain_authority_of(objects, ca);
    if (!held)
        return cr_error_set(err, CR_ERR_INVALID, "the key of that CA is not held");
    CR_CLEANUP(cr_issued) struct cr_issued issued = {0};
    CR_CLEANUP(cr_private_key) struct cr_private_key *pair = cr_private_key_new(&ecdsa, err);
    if (!pair || !cr_issue_leaf(held->authority, &spec, pair, now_ms, &issued, err) ||
        !cr_private_key_write(pair, key, err))
        return cr_error_wrap(err, "no canary can be made");
    cr_buf_puts(certificate, issued.pem);
    return true;
}
