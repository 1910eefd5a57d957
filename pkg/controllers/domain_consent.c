#include "base/alloc.h"
#include "base/strings.h"
#include "controllers/domain_objects_internal.h"
#include "kube/object.h"

bool cr_domain_owns(const struct cr_domain_objects *objects, const struct cr_json *object)
{
    return cr_streq(cr_obj_annotation(object, CR_DOMAIN_ANNOTATION), objects->title);
}

static bool refuse(struct cr_domain_item *item, const char *reason, char *words)
{
    item->refused_reason = reason;
    item->refused = words;
    return true;
}

static bool refuse_owner(const struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    const char *owner = cr_obj_annotation(item->object, CR_DOMAIN_ANNOTATION);
    if (!item->object || cr_streq(owner, objects->title))
        return false;
    cr_autofree char *label = cr_domain_object_label(item->resource, item->ns, item->name);
    if (!owner)
        return refuse(item, "NotOurs",
                      cr_asprintf("%s is not written by this domain: its owner lets it be overwritten with the "
                                  "annotation " CR_DOMAIN_ANNOTATION ": %s",
                                  label, objects->title));
    return refuse(item, "OtherDomain",
                  cr_asprintf("%s belongs to the domain '%.300s' by its annotation " CR_DOMAIN_ANNOTATION
                              ": change it to %s, or publish elsewhere",
                              label, owner, objects->title));
}

static bool refuse_form(const struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    cr_autofree char *label = cr_domain_object_label(item->resource, item->ns, item->name);
    const char *reason = NULL;
    if (cr_json_bool_at(item->object, false, "immutable"))
        return refuse(
            item, "Immutable",
            cr_asprintf("%s is immutable: publish under another name, since kubelets keep the old content of one "
                        "that is deleted and made anew",
                        label));
    char *words = cr_domain_item_is_ca_bundle(objects, item)
                      ? cr_domain_ca_bundle_refuse(cr_domain_item_target(objects, item), item->object, &reason)
                      : NULL;
    if (words)
        return refuse(item, reason, words);
    words = item->is_leaf ? cr_domain_keystore_refuse(objects, item) : NULL;
    return words && refuse(item, "KeystorePassword", words);
}

void cr_domain_consent_judge(const struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    if (item->closed_reason)
        refuse(item, item->closed_reason, cr_strdup(item->closed));
    else if (!refuse_owner(objects, item))
        (void)refuse_form(objects, item);
}
