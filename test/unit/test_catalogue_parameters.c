#include "catalogue/catalogue_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strings.h"
#include "support/builtin.h"

/* clang-format off */
static const struct {
    const char *component;
    const char *name;
    enum cr_parameter_kind kind;
    unsigned roles;
} known[] = {
    {"kube-apiserver", "--tls-cert-file", CR_PARAMETER_FLAG, CR_ROLE_BIT(CR_ROLE_SERVER_LEAF)},
    {"kube-apiserver", "--oidc-ca-file", CR_PARAMETER_FLAG, CR_ROLE_BIT(CR_ROLE_SERVER_CA)},
    {"etcd", "ETCD_TRUSTED_CA_FILE", CR_PARAMETER_VARIABLE, CR_ROLE_BIT(CR_ROLE_CLIENT_CA) | CR_ROLE_BIT(CR_ROLE_SERVER_CA)},
    {"etcd", "--peer-client-key-file", CR_PARAMETER_FLAG, CR_ROLE_BIT(CR_ROLE_CLIENT_LEAF)},
    {"kubelet", "tlsCertFile", CR_PARAMETER_CONFIG, CR_ROLE_BIT(CR_ROLE_SERVER_LEAF)},
    {"kube-proxy", "kubeconfig certificate-authority", CR_PARAMETER_CONFIG, CR_ROLE_BIT(CR_ROLE_SERVER_CA)},
};
/* clang-format on */

static void lists_what_the_entry_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(known); i++) {
        const struct cr_component *component = cr_catalogue_by_name(builtin, known[i].component);
        struct cr_known_parameter one;
        bool found = false;
        for (size_t k = 0; cr_component_parameter(component, k, &one); k++)
            found = found || (cr_streq(one.name, known[i].name) && one.kind == known[i].kind &&
                              one.roles == known[i].roles && !one.hands_on);
        if (!found)
            fail_msg("%s does not list %s so", known[i].component, known[i].name);
    }
}

/* Each name of each use once, and then no more. */
static void lists_all_of_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < builtin->len; i++) {
        const struct cr_component *component = &builtin->items[i];
        size_t want = 0;
        for (size_t u = 0; u < component->uses_len; u++) {
            const struct cr_use *use = &component->uses[u];
            want += use->flags.len + use->env.len + use->config.len + use->paths.len;
        }
        size_t is = 0;
        struct cr_known_parameter one;
        while (cr_component_parameter(component, is, &one))
            is++;
        if (is != want)
            fail_msg("%s: %zu of %zu", component->name, is, want);
    }
    struct cr_known_parameter one;
    assert_false(cr_component_parameter(NULL, 0, &one));
}

static void a_capability_says_where_its_claim_is_from(void **state)
{
    (void)state;
    struct cr_capability is;
    struct cr_program etcd = {.component = cr_catalogue_by_name(builtin, "etcd"), .version = "3.6.8"};
    cr_catalogue_capability(&etcd, "--trusted-ca-file", CR_ROLE_CLIENT_CA, &is);
    assert_string_equal(is.confidence, "experiment");
    struct cr_program etcdctl = {.component = cr_catalogue_by_name(builtin, "etcdctl"), .version = "3.6.8"};
    cr_catalogue_capability(&etcdctl, "--cacert", CR_ROLE_SERVER_CA, &is);
    assert_string_equal(is.confidence, "experiment");
    struct cr_program old = {.component = cr_catalogue_by_name(builtin, "kube-controller-manager"),
                             .version = "1.20.0"};
    cr_catalogue_capability(&old, "--cluster-signing-cert-file", CR_ROLE_OPAQUE, &is);
    assert_string_equal(is.confidence, "memory");
    cr_catalogue_capability(&(struct cr_program){0}, "--cacert", CR_ROLE_SERVER_CA, &is);
    assert_null(is.confidence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_what_the_entry_names),
        cmocka_unit_test(lists_all_of_them),
        cmocka_unit_test(a_capability_says_where_its_claim_is_from),
    };
    return cmocka_run_group_tests(tests, load_builtin, free_builtin);
}
