/* Whether an object may be written: only what its owner has given to this domain. */
#include "base/alloc.h"
#include "base/strings.h"
#include "trust/controller/domain_objects_internal.h"
#include "kube/object.h"

bool cr_domain_owns(const struct cr_domain_objects *objects, const struct cr_json *object)
{
    return cr_streq(cr_obj_annotation(object, CR_DOMAIN_ANNOTATION), objects->title);
}

/* Takes words. */
static bool refuse(struct cr_domain_item *item, enum cr_trust_reason reason, char *words)
{
    item->refused = reason;
    item->refused_text = words;
    return true;
}

static bool refuse_as(const struct cr_domain_objects *objects, struct cr_domain_item *item, enum cr_trust_reason reason,
                      const char *owner)
{
    cr_autofree char *label = cr_domain_object_label(item->resource, item->ns, item->name);
    return refuse(item, reason,
                  cr_trust_problem_text(
                      reason, &(struct cr_trust_about){
                                  .object = label, .owner = owner, .wanted = objects->title, .detail = "this domain"}));
}

static bool refuse_owner(const struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    const char *owner = cr_obj_annotation(item->object, CR_DOMAIN_ANNOTATION);
    if (!item->object || cr_streq(owner, objects->title))
        return false;
    return refuse_as(objects, item, owner ? CR_TRUST_OTHER_DOMAIN : CR_TRUST_NOT_OURS, owner);
}

static bool refuse_form(const struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    enum cr_trust_reason reason = CR_TRUST_FINE;
    if (cr_json_bool_at(item->object, false, "immutable"))
        return refuse_as(objects, item, CR_TRUST_IMMUTABLE, NULL);
    char *words = cr_domain_item_is_ca_bundle(objects, item)
                      ? cr_domain_ca_bundle_refuse(cr_domain_item_target(objects, item), item->object, &reason)
                      : NULL;
    if (words)
        return refuse(item, reason, words);
    words = item->is_leaf ? cr_domain_keystore_refuse(objects, item) : NULL;
    return words && refuse(item, CR_TRUST_KEYSTORE_PASSWORD, words);
}

void cr_domain_consent_judge(const struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    if (item->closed)
        refuse(item, item->closed, cr_strdup(item->closed_text));
    else if (!refuse_owner(objects, item))
        (void)refuse_form(objects, item);
}
