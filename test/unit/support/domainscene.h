/* A trust domain and the API server that has its objects. */
#ifndef TEST_SUPPORT_DOMAINSCENE_H
#define TEST_SUPPORT_DOMAINSCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "codec/base64.h"
#include "trust/controller/domain_objects.h"
#include "kube/object.h"
#include "pki/x509.h"
#include "support/fakestore.h"
#include "support/testcerts.h"

#define SECRET_PATH(ns, name)    "/api/v1/namespaces/" ns "/secrets/" name
#define CONFIGMAP_PATH(ns, name) "/api/v1/namespaces/" ns "/configmaps/" name
/* Of the UID "domain-uid". */
#define STAGING "certroll-staging-a8d622c0bce046a7"

struct domain_scene {
    struct fake_store store;
    struct cr_domain *domain;
    struct cr_domain_status status;
    struct cr_domain_objects *objects;
    struct cr_domain_world world;
    const char *own_ns;
    struct cr_strvec namespaces, consenting;
};

static bool scene_consents(void *arg, const char *ns, const char *domain)
{
    struct domain_scene *s = arg;
    return cr_streq(domain, s->domain->name) && cr_strvec_has(&s->consenting, ns);
}

static bool scene_namespace_exists(void *arg, const char *ns)
{
    struct domain_scene *s = arg;
    return cr_strvec_has(&s->namespaces, ns);
}

/* All of them, the last first. */
static void scene_select(void *arg, const struct cr_selector *selector, struct cr_strvec *names)
{
    (void)selector;
    struct domain_scene *s = arg;
    for (size_t i = s->namespaces.len; i > 0; i--)
        cr_strvec_add(names, s->namespaces.items[i - 1]);
}

static inline void scene_begin(struct domain_scene *s, const char *kind, const char *spec)
{
    struct cr_error err = {0};
    *s = (struct domain_scene){.own_ns = "operator"};
    cr_autofree char *text =
        cr_asprintf("{apiVersion: certroll.dev/v1alpha1, kind: %s, metadata: {name: mesh, "
                    "namespace: ns, uid: domain-uid, resourceVersion: '1', generation: 1},\nspec: {%s}}",
                    kind, spec);
    CR_CLEANUP(cr_json) struct cr_json *object = test_yaml(text);
    s->domain = cr_domain_decode(object, &err);
    if (!s->domain)
        fail_msg("the test's own domain: %s", err.text);
    fake_store_start(&s->store);
}

static inline bool scene_try_look(struct domain_scene *s, struct cr_error *err)
{
    const struct cr_domain_reader reader = {s->store.client,        s->own_ns,    scene_consents,
                                            scene_namespace_exists, scene_select, s};
    cr_domain_objects_free(s->objects);
    s->world = (struct cr_domain_world){.domain = s->domain, .status = &s->status, .now_ms = cr_clock_wall_ms()};
    s->objects = cr_domain_objects_read(&reader, s->domain, &s->status, cr_clock_wall_ms(), err);
    if (s->objects)
        cr_domain_objects_view(s->objects, &s->world);
    return s->objects != NULL;
}

static inline void scene_look(struct domain_scene *s)
{
    struct cr_error err = {0};
    if (!scene_try_look(s, &err))
        fail_msg("%s", err.text);
}

static inline void scene_end(struct domain_scene *s)
{
    cr_domain_objects_free(s->objects);
    fake_store_stop(&s->store);
    cr_domain_free(s->domain);
    cr_strvec_dispose(&s->namespaces);
    cr_strvec_dispose(&s->consenting);
}

/* --- what is there --- */

static inline void scene_entry(struct cr_json *object, const char *key, const char *value)
{
    cr_autofree char *text = value ? cr_base64_encode(value, strlen(value)) : NULL;
    cr_json_set_string(cr_json_object_in(object, "data"), key, text);
}

/* owner: the annotation, NULL: none. Texts may be NULL. */
static inline struct cr_json *scene_secret(const char *owner, const char *certificate, const char *key,
                                           const char *trust)
{
    struct cr_json *secret = cr_json_new_object();
    cr_json_set_string(secret, "type", "Opaque");
    struct cr_json *annotations = cr_json_object_in(cr_json_object_in(secret, "metadata"), "annotations");
    cr_json_set_string(annotations, CR_DOMAIN_ANNOTATION, owner);
    scene_entry(secret, "tls.crt", certificate);
    scene_entry(secret, "tls.key", key);
    scene_entry(secret, "ca.crt", trust);
    return secret;
}

/* Owned text of an entry; NULL: none. */
static inline char *scene_text(struct domain_scene *s, const char *path, const char *key)
{
    const char *base64 = cr_json_string_at(fake_store_get(&s->store, path), "data", key);
    struct cr_buf bytes = {0};
    if (!base64 || !cr_base64_decode(base64, strlen(base64), &bytes, NULL))
        return NULL;
    return cr_buf_steal(&bytes);
}

/* --- what is looked for --- */

static inline size_t scene_object(const struct domain_scene *s, const char *kind, const char *ns, const char *name)
{
    size_t i = 0;
    while (i < s->world.objects_len &&
           !(cr_streq(s->world.objects[i].kind, kind) && cr_streq(s->world.objects[i].ns, ns) &&
             cr_streq(s->world.objects[i].name, name)))
        i++;
    if (i == s->world.objects_len)
        fail_msg("there is no %s %s/%s", kind, cr_or_empty(ns), name);
    return i;
}

static inline const struct cr_domain_object *scene_view(const struct domain_scene *s, const char *kind, const char *ns,
                                                        const char *name)
{
    return &s->world.objects[scene_object(s, kind, ns, name)];
}

/* Its index; cas_len: it is not at hand. */
static inline size_t scene_ca(const struct domain_scene *s, const struct test_cert *cert)
{
    char fingerprint[CR_SHA256_HEX];
    size_t i = 0;
    cr_x509_fingerprint(cert->x509, fingerprint);
    while (i < s->world.cas_len && strcmp(s->world.cas[i].fingerprint, fingerprint) != 0)
        i++;
    return i;
}

/* A write with all CAs at hand in the bundle. */
static inline bool scene_write(struct domain_scene *s, struct cr_domain_write write, struct cr_error *err)
{
    cr_autofree bool *all = NULL;
    CR_CLEANUP(cr_domain_written) struct cr_domain_written made = {0};
    if (!write.bundle) {
        all = cr_calloc(s->world.cas_len + 1, sizeof *all);
        memset(all, true, s->world.cas_len * sizeof *all);
        write.bundle = all;
    }
    bool written = cr_domain_objects_write(s->objects, &write, cr_clock_wall_ms(), &made, err);
    assert_true(!written == !made.version || made.reason);
    return written;
}

static inline void scene_must_write(struct domain_scene *s, struct cr_domain_write write)
{
    struct cr_error err = {0};
    if (!scene_write(s, write, &err))
        fail_msg("%s", err.text);
}

static inline void scene_refused(const struct cr_error *err, const char *words)
{
    if (!strstr(err->text, words))
        fail_msg("want \"%s\", got: %s", words, err->text);
}

#endif
