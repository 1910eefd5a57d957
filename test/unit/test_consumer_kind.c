#include "api/consumer_kind.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "support/checkoutfile.h"

/* --- the table --- */

static void a_kind_is_found_with_its_own_api_version_only(void **state)
{
    (void)state;
    static const char *const unknown[][2] = {{"apps/v1beta1", "Deployment"},
                                             {"apps", "Deployment"},
                                             {"v1", "Deployment"},
                                             {"apps/v1", "deployments"},
                                             {"apps/v1", NULL},
                                             {NULL, "Deployment"},
                                             {"v1", "Secret"},
                                             {"apps.kruise.io/v1", "StatefulSet"}};
    for (size_t i = 0; i < cr_consumer_kinds_len; i++) {
        const struct cr_resource *resource = &cr_consumer_kinds[i].resource;
        cr_autofree char *api_version = cr_resource_api_version(resource);
        assert_ptr_equal(cr_consumer_kind_find(api_version, resource->kind), &cr_consumer_kinds[i]);
        assert_ptr_equal(cr_consumer_kind_of(resource->kind), &cr_consumer_kinds[i]);
    }
    for (size_t i = 0; i < cr_array_len(unknown); i++)
        assert_null(cr_consumer_kind_find(unknown[i][0], unknown[i][1]));
}

static void a_kind_that_is_not_in_the_table_has_no_property(void **state)
{
    (void)state;
    static const char *const kinds[] = {NULL, "", "Foo", "deployment", "Deployments"};
    for (size_t i = 0; i < cr_array_len(kinds); i++) {
        const struct cr_consumer_kind *row = cr_consumer_kind_of(kinds[i]);
        assert_string_equal(row->resource.kind, "");
        assert_false(cr_consumer_kind_has_pods(row));
        assert_false(cr_consumer_kind_rolls(row));
        assert_false(row->per_node || row->surges || row->restart_at || row->only_bare || row->by_replica_sets);
    }
}

static void what_columns_say_fits_together(void **state)
{
    (void)state;
    size_t bare = 0;
    for (size_t i = 0; i < cr_consumer_kinds_len; i++) {
        const struct cr_consumer_kind *row = &cr_consumer_kinds[i];
        assert_int_equal(cr_consumer_kind_has_pods(row), row->manner == CR_KIND_STAYS);
        assert_true(!row->by_replica_sets || row->revision_labels[0]);
        assert_true(!row->restart_at || cr_consumer_kind_rolls(row));
        assert_false(row->only_bare && row->by_replica_sets);
        assert_true(row->update < CR_UPDATES);
        bare += row->only_bare;
    }
    assert_int_equal(bare, 1); /* pods of what by_replica_sets makes are found by it */
}

static void labels_of_revisions_are_known(void **state)
{
    (void)state;
    assert_true(cr_consumer_kind_is_revision_label("pod-template-hash"));
    assert_true(cr_consumer_kind_is_revision_label("controller-revision-hash"));
    assert_true(cr_consumer_kind_is_revision_label("rollouts-pod-template-hash"));
    assert_true(cr_consumer_kind_is_revision_label("pod-template-generation"));
    assert_false(cr_consumer_kind_is_revision_label("app"));
    assert_false(cr_consumer_kind_is_revision_label(NULL));
}

/* --- the lists of the CRDs and the manifests --- */

/* The first document of the file that is of this kind. Owned. */
static struct cr_json *read_object(const char *path, const char *kind)
{
    cr_autofree char *page = test_checkout_file(path);
    for (const char *at = page; at;) {
        const char *end = strstr(at, "\n---\n");
        struct cr_error err = {0};
        struct cr_json *object = cr_yaml_parse(at, end ? (size_t)(end - at) : strlen(at), &err);
        if (!object)
            fail_msg("%s: %s", path, err.text);
        if (cr_streq(cr_json_string_at(object, "kind"), kind))
            return object;
        cr_json_free(object);
        at = end ? end + strlen("\n---\n") : NULL;
    }
    fail_msg("%s has no %s", path, kind);
    return NULL;
}

static size_t indentation(const char *line)
{
    return strspn(line, " ");
}

/* The schema of the first field targetRef, which alone is read: other fields of a CRD are anchors. Owned. */
static struct cr_json *schema_of_target(const char *path)
{
    cr_autofree char *page = test_checkout_file(path);
    const char *key = strstr(page, " targetRef:\n");
    assert_non_null(key);
    const char *begin = strchr(key, '\n') + 1;
    const char *end = begin;
    while (*end && (*end == '\n' || indentation(end) >= indentation(begin)))
        end = strchr(end, '\n') + 1;
    struct cr_error err = {0};
    struct cr_json *schema = cr_yaml_parse(begin, (size_t)(end - begin), &err);
    if (!schema)
        fail_msg("%s: targetRef: %s", path, err.text);
    return schema;
}

static void the_policy_s_targets_are_the_table(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *target = schema_of_target("crds/certroll.dev_certrotationpolicies.yaml");
    CR_CLEANUP(cr_buf) struct cr_buf all = CR_BUF_INIT(0);
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        cr_buf_printf(&all, "%s%s",
                      i + 1 == cr_consumer_kinds_len ? " or "
                      : i                            ? ", "
                                                     : "",
                      cr_consumer_kinds[i].resource.kind);
    cr_buf_puts(&all, ".");
    assert_string_equal(cr_json_string_at(target, "properties", "kind", "description"), all.data);
}

/* A rule of the CRD holds the apiVersion against the kind: both stand in it as words in quotes. */
static bool rule_has(const struct cr_json *rules, const char *kind, const char *api_version)
{
    cr_autofree char *quoted_kind = cr_asprintf("'%s'", kind);
    cr_autofree char *quoted_version = cr_asprintf("'%s'", api_version);
    for (const struct cr_json *rule = cr_json_first(rules); rule; rule = cr_json_next(rule)) {
        const char *text = cr_json_string_at(rule, "rule");
        if (strstr(text, quoted_kind) && strstr(text, quoted_version))
            return true;
    }
    return false;
}

static void each_target_is_held_against_its_api_version(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *target = schema_of_target("crds/certroll.dev_certrotationpolicies.yaml");
    const struct cr_json *rules = cr_json_get(target, "x-kubernetes-validations");
    const char *usual = cr_json_string_at(target, "properties", "apiVersion", "description");
    for (size_t i = 0; i < cr_consumer_kinds_len; i++) {
        cr_autofree char *api_version = cr_resource_api_version(&cr_consumer_kinds[i].resource);
        if (!rule_has(rules, cr_consumer_kinds[i].resource.kind, api_version))
            fail_msg("no rule of targetRef says that a %s has the apiVersion %s", cr_consumer_kinds[i].resource.kind,
                     api_version);
        assert_non_null(strstr(usual, api_version));
    }
    for (const struct cr_json *rule = cr_json_first(rules); rule; rule = cr_json_next(rule)) {
        for (const char *at = strchr(cr_json_string_at(rule, "rule"), '\''); at; at = strchr(at + 1, '\'')) {
            cr_autofree char *word = cr_strndup(at + 1, strcspn(at + 1, "'"));
            if (isupper((unsigned char)*word))
                assert_string_equal(cr_consumer_kind_of(word)->resource.kind, word);
        }
    }
}

static void the_control_plane_s_workloads_are_those_that_their_template_restarts(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *target = schema_of_target("crds/certroll.dev_controlplanepolicies.yaml");
    const struct cr_json *word = cr_json_first(cr_json_at(target, "properties", "kind", "enum"));
    for (size_t i = 0; i < cr_consumer_kinds_len; i++) {
        if (!cr_consumer_kind_rolls_by_template(&cr_consumer_kinds[i]))
            continue;
        assert_string_equal(cr_json_string(word), cr_consumer_kinds[i].resource.kind);
        word = cr_json_next(word);
    }
    assert_null(word);
}

static bool has_word(const struct cr_json *array, const char *word)
{
    for (const struct cr_json *item = cr_json_first(array); item; item = cr_json_next(item))
        if (cr_streq(cr_json_string(item), word))
            return true;
    return false;
}

static bool role_allows(const struct cr_json *role, const char *verb, const struct cr_resource *on)
{
    const struct cr_json *rules = cr_json_get(role, "rules");
    for (const struct cr_json *rule = cr_json_first(rules); rule; rule = cr_json_next(rule))
        if (has_word(cr_json_get(rule, "apiGroups"), on->group) && has_word(cr_json_get(rule, "verbs"), verb) &&
            has_word(cr_json_get(rule, "resources"), on->plural))
            return true;
    return false;
}

static bool is_in_table(const char *group, const char *plural)
{
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        if (cr_streq(cr_consumer_kinds[i].resource.group, group) &&
            cr_streq(cr_consumer_kinds[i].resource.plural, plural))
            return true;
    return false;
}

/* Of the groups that the table has. */
static void require_nothing_beyond_the_table(const struct cr_json *role)
{
    const struct cr_json *rules = cr_json_get(role, "rules");
    for (const struct cr_json *rule = cr_json_first(rules); rule; rule = cr_json_next(rule)) {
        const char *group = cr_json_string(cr_json_first(cr_json_get(rule, "apiGroups")));
        const struct cr_json *resources = cr_json_get(rule, "resources");
        for (size_t i = 0; i < cr_consumer_kinds_len; i++)
            for (const struct cr_json *r = cr_json_first(resources); r; r = cr_json_next(r))
                if (cr_streq(cr_consumer_kinds[i].resource.group, group) && !is_in_table(group, cr_json_string(r)))
                    fail_msg("the role has a rule for %s of %s, which is no kind of the table", cr_json_string(r),
                             group);
    }
}

static void the_role_allows_what_is_done_with_each_kind_and_no_more(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *role = read_object("manifests/namespace/role.yaml", "Role");
    for (size_t i = 0; i < cr_consumer_kinds_len; i++) {
        const struct cr_consumer_kind *row = &cr_consumer_kinds[i];
        assert_int_equal(role_allows(role, "list", &row->resource), cr_consumer_kind_is_watched(row));
        assert_int_equal(role_allows(role, "watch", &row->resource), cr_consumer_kind_is_watched(row));
        assert_int_equal(role_allows(role, "patch", &row->resource), cr_consumer_kind_rolls(row));
    }
    require_nothing_beyond_the_table(role);
}

static void the_control_plane_s_role_allows_what_is_done_with_its_workloads(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *role = read_object("manifests/components/control-plane/role.yaml", "ClusterRole");
    for (size_t i = 0; i < cr_consumer_kinds_len; i++) {
        const struct cr_consumer_kind *row = &cr_consumer_kinds[i];
        assert_int_equal(role_allows(role, "get", &row->resource), cr_consumer_kind_rolls_by_template(row));
        assert_int_equal(role_allows(role, "patch", &row->resource), cr_consumer_kind_rolls_by_template(row));
    }
    require_nothing_beyond_the_table(role);
}

static const char *variable(const struct cr_json *policy, const char *name)
{
    const struct cr_json *variables = cr_json_at(policy, "spec", "variables");
    for (const struct cr_json *v = cr_json_first(variables); v; v = cr_json_next(v))
        if (cr_streq(cr_json_string_at(v, "name"), name))
            return cr_json_string_at(v, "expression");
    fail_msg("the admission policy has no variable %s", name);
    return NULL;
}

static bool has_rule_for(const struct cr_json *policy, const char *group)
{
    const struct cr_json *rules = cr_json_at(policy, "spec", "matchConstraints", "resourceRules");
    for (const struct cr_json *rule = cr_json_first(rules); rule; rule = cr_json_next(rule))
        if (has_word(cr_json_get(rule, "apiGroups"), group))
            return true;
    return false;
}

/* It lets pass an update of the template where that restarts, and of spec.restartAt where that does. */
static void the_admission_policy_lets_those_be_updated_that_are_restarted(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *policy = read_object("manifests/base/admission.yaml", "ValidatingAdmissionPolicy");
    const char *by_template = variable(policy, "workload");
    const char *by_time = variable(policy, "rollout");
    for (size_t i = 0; i < cr_consumer_kinds_len; i++) {
        const struct cr_consumer_kind *row = &cr_consumer_kinds[i];
        cr_autofree char *update = cr_asprintf("\"UPDATE %s/%s\"", row->resource.group, row->resource.plural);
        assert_int_equal(strstr(by_template, update) != NULL, cr_consumer_kind_rolls_by_template(row));
        assert_int_equal(strstr(by_time, update) != NULL, row->restart_at);
        if (row->manner != CR_KIND_BY_API)
            assert_true(has_rule_for(policy, row->resource.group));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_is_found_with_its_own_api_version_only),
        cmocka_unit_test(a_kind_that_is_not_in_the_table_has_no_property),
        cmocka_unit_test(what_columns_say_fits_together),
        cmocka_unit_test(labels_of_revisions_are_known),
        cmocka_unit_test(the_policy_s_targets_are_the_table),
        cmocka_unit_test(each_target_is_held_against_its_api_version),
        cmocka_unit_test(the_control_plane_s_workloads_are_those_that_their_template_restarts),
        cmocka_unit_test(the_role_allows_what_is_done_with_each_kind_and_no_more),
        cmocka_unit_test(the_control_plane_s_role_allows_what_is_done_with_its_workloads),
        cmocka_unit_test(the_admission_policy_lets_those_be_updated_that_are_restarted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
