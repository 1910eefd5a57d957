/* The key with which opaque material is digested: 32 random bytes in an immutable Secret of the operator's own
 * namespace, made once, by whichever replica comes first. When the key is lost or replaced, opaque material counts as
 * seen for the first time again; no change follows from it. Thread-safe. */
#ifndef CR_CLUSTER_DIGEST_KEY_H
#define CR_CLUSTER_DIGEST_KEY_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "kube/client.h"

#define CR_DIGEST_KEY_SECRET "certroll-digest-key"
enum { CR_DIGEST_KEY = 32 };

struct cr_digest_key;
/* ns: the operator's, copied; NULL: not known, then there is no key. The client must outlive it. */
struct cr_digest_key *cr_digest_key_new(struct cr_client *client, const char *ns);
void cr_digest_key_free(struct cr_digest_key *key);
CR_DEFINE_CLEANUP(cr_digest_key, struct cr_digest_key, cr_digest_key_free)

/* False: there is no key now. The first call reads or makes the key and may block for three requests; after a failure
 * it is not tried again for a while. Once it is known, it stays for as long as the process lives. */
bool cr_digest_key_get(struct cr_digest_key *key, unsigned char out[CR_DIGEST_KEY]);
/* Why there is none, as a clause behind "because"; static. NULL: there is one, or none was requested yet, or the
 * problem passes by itself (an API server out of reach). */
const char *cr_digest_key_problem(struct cr_digest_key *key);

#endif
