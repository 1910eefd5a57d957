#include "net/tls_chain.h"

#include <stdio.h>
#include <string.h>

#include "base/strings.h"

/* Bytes that are left to read. */
struct span {
    const unsigned char *at;
    size_t len;
};

static bool take(struct span *from, size_t len, struct span *out)
{
    if (len > from->len)
        return false;
    *out = (struct span){from->at, len};
    from->at += len;
    from->len -= len;
    return true;
}

/* What follows a length of so many bytes. */
static bool take_vector(struct span *from, size_t width, struct span *out)
{
    struct span head;
    size_t len = 0;
    if (!take(from, width, &head))
        return false;
    for (size_t i = 0; i < width; i++)
        len = len << 8 | head.at[i];
    return take(from, len, out);
}

/* --- DER --- */

enum { INTEGER = 0x02, OBJECT = 0x06, SEQUENCE = 0x30, VERSION = 0xa0 };

/* The content of an element with this tag, of one byte, and of definite length. */
static bool take_element(struct span *from, unsigned char tag, struct span *out)
{
    enum { LONG = 0x80, WIDEST = 3 };
    struct span head;
    if (!take(from, 2, &head) || head.at[0] != tag)
        return false;
    if (head.at[1] < LONG)
        return take(from, head.at[1], out);
    size_t width = head.at[1] - LONG;
    return width >= 1 && width <= WIDEST && take_vector(from, width, out);
}

static bool skip(struct span *from, unsigned char tag)
{
    struct span ignored;
    return take_element(from, tag, &ignored);
}

/* The AlgorithmIdentifier of a certificate's key. */
static bool find_algorithm(struct span der, struct span *algorithm)
{
    struct span certificate;
    struct span tbs;
    struct span key;
    if (!take_element(&der, SEQUENCE, &certificate) || der.len || !take_element(&certificate, SEQUENCE, &tbs))
        return false;
    if (tbs.len && tbs.at[0] == VERSION && !skip(&tbs, VERSION))
        return false;
    return skip(&tbs, INTEGER) && skip(&tbs, SEQUENCE) /* signature */ && skip(&tbs, SEQUENCE) /* issuer */ &&
           skip(&tbs, SEQUENCE) /* validity */ && skip(&tbs, SEQUENCE) /* subject */ &&
           take_element(&tbs, SEQUENCE, &key) && take_element(&key, SEQUENCE, algorithm);
}

struct oid {
    unsigned char len;
    unsigned char bytes[9];
};

static bool is_one_of(struct span oid, const struct oid *known, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (oid.len == known[i].len && memcmp(oid.at, known[i].bytes, oid.len) == 0)
            return true;
    return false;
}

/* --- keys --- */

static const struct oid ec_key = {7, {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01}}; /* RFC 5480 */

static const struct oid others[] = {
    {9, {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01}}, /* rsaEncryption, RFC 3279 */
    {9, {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a}}, /* id-RSASSA-PSS, RFC 4055 */
    {3, {0x2b, 0x65, 0x70}},                                     /* Ed25519, RFC 8410 */
    {3, {0x2b, 0x65, 0x71}},                                     /* Ed448 */
    {9, {0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x11}}, /* ML-DSA-44, RFC 9881 */
    {9, {0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x12}}, /* ML-DSA-65 */
    {9, {0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x13}}, /* ML-DSA-87 */
};

/* Those of tls_limits.c. */
static const struct oid curves[] = {
    {8, {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07}},       /* P-256 */
    {5, {0x2b, 0x81, 0x04, 0x00, 0x22}},                         /* P-384 */
    {5, {0x2b, 0x81, 0x04, 0x00, 0x23}},                         /* P-521 */
    {9, {0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x07}}, /* brainpoolP256r1, RFC 5639 */
    {9, {0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0b}}, /* brainpoolP384r1 */
    {9, {0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0d}}, /* brainpoolP512r1 */
};

/* NULL: nothing is wrong with it. */
static const char *problem_of(struct span der)
{
    struct span algorithm;
    struct span oid;
    if (!find_algorithm(der, &algorithm) || !take_element(&algorithm, OBJECT, &oid))
        return "a certificate of its chain is not DER";
    if (is_one_of(oid, others, cr_array_len(others)))
        return NULL;
    if (!is_one_of(oid, &ec_key, 1))
        return "a key of its chain is none of RSA, ECDSA, EdDSA and ML-DSA";
    if (take_element(&algorithm, OBJECT, &oid) && is_one_of(oid, curves, cr_array_len(curves)))
        return NULL;
    return "a key of its chain is on no curve that is taken: P-256, P-384, P-521, brainpool r1, by name";
}

bool cr_tls_chain_fits(const unsigned char *body, size_t len, bool tls13, char words[CR_TLS_LIMIT_WORDS])
{
    struct span message = {body, len};
    struct span list;
    struct span der;
    struct span extensions;
    const char *problem = NULL;
    size_t count = 0;
    bool sound = (!tls13 || take_vector(&message, 1, &list)) && take_vector(&message, 3, &list) && !message.len;
    while (sound && list.len && !problem) {
        sound = take_vector(&list, 3, &der) && (!tls13 || take_vector(&list, 2, &extensions));
        if (sound)
            problem = ++count > CR_TLS_CERTIFICATES ? "its chain has more than 32 certificates" : problem_of(der);
    }
    if (!sound)
        problem = "its chain of certificates is malformed";
    if (problem)
        snprintf(words, CR_TLS_LIMIT_WORDS, "%s", problem);
    return !problem;
}
