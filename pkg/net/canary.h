/* Does a server trust a CA? Asked with a canary: a client certificate of that CA, which authorises nothing and is sent
 * without any cross-certificate. Never is a server called trusting that does not verify its clients at all.
 *
 * In TLS 1.3 a client's handshake is over before the server has looked at its certificate (RFC 8446, section 4.6.2 and
 * appendix E.1.2), and one client cannot see whether a server verifies at all: some servers only ask (Go's
 * RequireAnyClientCert, nginx's optional_no_ca, a kube-apiserver). So each is listened to for half a second, then sent
 * something inert (probe_request.h), and what it makes of the canary is compared with what it makes of a *stranger*:
 * the same certificate, but of a CA that no server knows. Only a server that answers the canary with application data
 * and refuses the stranger trusts the CA. */
#ifndef CR_NET_CANARY_H
#define CR_NET_CANARY_H

#include "net/tls_probe.h"

enum cr_probe_trust {
    CR_PROBE_TRUST_UNASKED, /* it wants no client certificate in the handshake */
    CR_PROBE_TRUSTED,
    CR_PROBE_UNTRUSTED,
    CR_PROBE_TRUST_UNKNOWN, /* ask again */
};

/* targets: with the canary as their client; what they say of a request is ignored. Only CR_PROBE_TLS can be asked, all
 * others are unknown. Blocks for at most timeout_ms, of which a server that answers takes about 1 s; below 4 s busy
 * servers stay unknown. A server sees up to four connections, one of them with a certificate that it refuses. Any
 * thread. */
void cr_canary_probe(const struct cr_probe_target *targets, size_t count, int timeout_ms, enum cr_probe_trust *trusts);

/* The rule, pure. stranger, anonymous (without a certificate): NULL when not asked. *more: the verdict may change once
 * the stranger, and with HTTP's 401 the anonymous client, has asked the same. */
enum cr_probe_trust cr_canary_judge(const struct cr_probe_answer *canary, const struct cr_probe_answer *stranger,
                                    const struct cr_probe_answer *anonymous, bool *more);

#endif
