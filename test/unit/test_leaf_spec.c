#include "trust/rules/leaf_spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

static void dispose(struct cr_domain_leaf *leaf)
{
    struct cr_strvec *lists[] = {&leaf->dns_names, &leaf->addresses, &leaf->uris, &leaf->emails, &leaf->organizations};
    for (size_t i = 0; i < cr_array_len(lists); i++)
        cr_strvec_dispose(lists[i]);
    free(leaf->common_name);
    *leaf = (struct cr_domain_leaf){0};
}

static void fill(struct cr_domain_leaf *leaf)
{
    *leaf = (struct cr_domain_leaf){.common_name = cr_strdup("web"),
                                    .usages = CR_LEAF_SERVER,
                                    .key = {CR_KEY_ECDSA, 256},
                                    .life = {.duration_ms = 1000, .renew_before_ms = 100}};
    cr_strvec_add(&leaf->dns_names, "a.example");
    cr_strvec_add(&leaf->dns_names, "b.example");
}

static void reorder(struct cr_domain_leaf *leaf)
{
    cr_strvec_dispose(&leaf->dns_names);
    cr_strvec_add(&leaf->dns_names, "b.example");
    cr_strvec_add(&leaf->dns_names, "a.example");
}

static void renew_earlier(struct cr_domain_leaf *leaf)
{
    leaf->life.renew_before_ms = 200;
}

static void default_size(struct cr_domain_leaf *leaf)
{
    leaf->key.size = 0;
}

static void last_longer(struct cr_domain_leaf *leaf)
{
    leaf->life.duration_ms = 2000;
}

static void be_a_client(struct cr_domain_leaf *leaf)
{
    leaf->usages |= CR_LEAF_CLIENT;
}

static void have_another_key(struct cr_domain_leaf *leaf)
{
    leaf->key.algorithm = CR_KEY_ED25519;
}

static void have_no_name(struct cr_domain_leaf *leaf)
{
    cr_strset(&leaf->common_name, NULL);
}

/* The same texts, but other kinds of names; and a name that has two in it. */
static void move_a_name(struct cr_domain_leaf *leaf)
{
    cr_strvec_dispose(&leaf->dns_names);
    cr_strvec_add(&leaf->dns_names, "a.example");
    cr_strvec_add(&leaf->uris, "b.example");
}

static void join_names(struct cr_domain_leaf *leaf)
{
    cr_strvec_dispose(&leaf->dns_names);
    cr_strvec_add(&leaf->dns_names, "a.example,9:b.example");
}

static void belong_to_a_group(struct cr_domain_leaf *leaf)
{
    cr_strvec_add(&leaf->organizations, "system:masters");
}

static void the_digest_changes_with_what_shapes_the_leaf(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        void (*change)(struct cr_domain_leaf *leaf);
        bool same;
    } cases[] = {
        {"the order of names is no matter", reorder, true},
        {"nor when it is renewed", renew_earlier, true},
        {"a default is what it stands for", default_size, true},
        {"the duration", last_longer, false},
        {"the usages", be_a_client, false},
        {"the key", have_another_key, false},
        {"the common name", have_no_name, false},
        {"what kind a name is", move_a_name, false},
        {"one name is not two", join_names, false},
        {"the groups", belong_to_a_group, false},
    };
    char want[CR_SHA256_HEX];
    struct cr_domain_leaf leaf;
    fill(&leaf);
    cr_leaf_spec_digest(&leaf, want);
    dispose(&leaf);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char digest[CR_SHA256_HEX];
        fill(&leaf);
        cases[i].change(&leaf);
        cr_leaf_spec_digest(&leaf, digest);
        dispose(&leaf);
        if ((strcmp(digest, want) == 0) != cases[i].same)
            fail_msg("%s", cases[i].rule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_digest_changes_with_what_shapes_the_leaf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
