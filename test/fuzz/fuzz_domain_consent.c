/* An object that a domain would write, and a Namespace's annotation, from their owners: written is only what bears this
 * domain's name, and a refusal has a reason and words. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "trust/controller/domain_objects_internal.h"
#include "trust/controller/domain_world.h"
#include "kube/client.h"
#include "kube/object.h"

#define TITLE "mesh"

/* As the annotation is described: names with commas between. */
static bool has_name(const char *annotation, const char *name)
{
    cr_autofree char *copy = cr_strdup(annotation);
    for (char *rest = NULL, *word = strtok_r(copy, ", \t\n", &rest); word; word = strtok_r(NULL, ", \t\n", &rest))
        if (cr_streq(word, name) || cr_streq(word, "*"))
            return true;
    return false;
}

static void check_consent(const char *annotation)
{
    require(cr_domain_consents(annotation, TITLE) == (annotation && has_name(annotation, TITLE)));
}

static void check_item(const struct cr_domain *domain, struct cr_json *object, bool is_leaf)
{
    char title[] = TITLE;
    char ns[] = "n";
    char name[] = "o";
    static const struct cr_resource secrets = {"", "v1", "secrets", "Secret"};
    const struct cr_domain_objects objects = {.domain = domain, .title = title};
    struct cr_domain_item item = {
        .resource = &secrets, .ns = ns, .name = name, .is_leaf = is_leaf, .object = object, .password = object};
    cr_domain_consent_judge(&objects, &item);
    require(!item.refused == !item.refused_text && (!item.refused || *item.refused_text));
    require(item.refused || cr_domain_owns(&objects, object));
    require(item.refused || !cr_json_bool_at(object, false, "immutable"));
    free(item.refused_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char password[] = "password";
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse((const char *)data, size, &err);
    if (!object || !cr_json_is_object(object))
        return 0;
    struct cr_domain_target target = {.kind = CR_TARGET_VALIDATING_WEBHOOK, .name = password};
    struct cr_domain_leaf leaf = {.keystore = {.set = true, .password_secret = password, .password_key = password}};
    const struct cr_domain domain = {.targets = &target, .targets_len = 1, .leaves = &leaf, .leaves_len = 1};
    check_consent(cr_obj_annotation(object, CR_DOMAIN_CONSENT));
    check_item(&domain, object, true);
    check_item(&domain, object, false);
    return 0;
}
