/* The world of one trust domain, as its plan needs it: what the API server has now (domain_objects.h), and what
 * policies say about its consumers (from caches). Called in workers. */
#ifndef CR_TRUST_CONTROLLER_DOMAIN_WORLD_H
#define CR_TRUST_CONTROLLER_DOMAIN_WORLD_H

#include "base/strmap.h"
#include "cluster/cache.h"
#include "trust/controller/domain_objects.h"
#include "evidence/memory.h"
#include "catalogue/catalogue.h"
#include "trust/rules/domain_plan.h"

struct cr_domain_source {
    struct cr_client *client;
    struct cr_cache *cache;
    struct cr_memory *memory; /* of domains: what the API server refused */
    const struct cr_catalogue *catalogue;
    const char *operator_namespace; /* NULL: not known */
};

struct cr_domain_gathered {
    struct cr_domain_world world;    /* borrows from the other fields */
    struct cr_domain_status *status; /* borrowed; it moves with what is written */
    struct cr_domain_status known;   /* as it was at first, for objects */
    struct cr_domain_objects *objects;
    struct cr_domain_object *list; /* the world's objects, with evidence */
    struct cr_domain_evidence *evidence;
    struct cr_strmap *peers;  /* key type → why a peer does not take it, "": all take it */
    struct cr_strvec words;   /* that list borrows */
    int64_t look_again_ms;    /* when time alone decides about some object: how long from now; 0: never */
    bool trust_under_way;     /* a policy has not settled a change of trust in what is published */
    struct cr_strvec secrets; /* "ns/name" of all that it reads or writes, for cr_cache_domain_wants */
};

/* domain and status are borrowed for as long as it lives; out is to be disposed of in any case, and not to be moved.
 * Errors: what is needed cannot be read for now: Transient, or Forbidden and Invalid, which a person must put right. */
bool cr_domain_world_gather(const struct cr_domain_source *source, const struct cr_domain *domain,
                            struct cr_domain_status *status, struct cr_domain_gathered *out,
                            struct cr_error *err) CR_MUST_USE;
/* Updates it after writes: with what was written meanwhile and the current status, and with clock and caches read
 * again. */
void cr_domain_world_refresh(const struct cr_domain_source *source, struct cr_domain_gathered *gathered);
void cr_domain_world_dispose(struct cr_domain_gathered *gathered);
CR_DEFINE_DISPOSE(cr_domain_world, struct cr_domain_gathered, cr_domain_world_dispose)

/* What the API server does not let us write is tried again after so long. */
enum { CR_DOMAIN_REFUSED_MS = 60 * 1000 };
/* Memory key of that, owned; its note is the name of a cr_trust_reason, a space, and why. */
char *cr_domain_refused_key(const struct cr_domain *domain, const struct cr_domain_object *object);

/* Memory key, owned; its note is of this process's last write of the object: the time (wall clock), and as text the
 * resourceVersion that was returned.
 * There is none when that is not known. */
char *cr_domain_wrote_key(const struct cr_domain *domain, const struct cr_domain_object *object);

/* A Namespace's annotation CR_DOMAIN_CONSENT (NULL: none) has this ClusterTrustDomain's name, or "*". */
bool cr_domain_consents(const char *annotation, const char *domain);

#endif
