#include "pki/material_packing.h"

#include "base/alloc.h"

/* Who adds a member packs it. */
_Static_assert(sizeof(void *) != 8 || (sizeof(struct cr_ca) == 256 && sizeof(struct cr_material) == 592),
               "a member that is not packed is lost");

static void pack_ca(struct cr_buf *out, const struct cr_ca *ca)
{
    cr_pack_hex(out, ca->fingerprint);
    cr_pack_hex(out, ca->identity);
    cr_pack_hex(out, ca->subject);
    cr_pack_hex(out, ca->serial);
    cr_pack_int(out, ca->not_before_ms);
    cr_pack_int(out, ca->not_after_ms);
}

static void unpack_ca(struct cr_unpacking *from, struct cr_ca *ca)
{
    cr_unpack_hex(from, ca->fingerprint, sizeof ca->fingerprint);
    cr_unpack_hex(from, ca->identity, sizeof ca->identity);
    cr_unpack_hex(from, ca->subject, sizeof ca->subject);
    cr_unpack_hex(from, ca->serial, sizeof ca->serial);
    ca->not_before_ms = cr_unpack_int(from);
    ca->not_after_ms = cr_unpack_int(from);
}

static void pack_leaf(struct cr_buf *out, const struct cr_material *m)
{
    cr_pack_hex(out, m->leaf);
    cr_pack_hex(out, m->chain);
    cr_pack_hex(out, m->key);
    cr_pack_hex(out, m->serial);
    cr_pack_text(out, m->key_type);
    cr_pack_hex(out, m->issuer);
    cr_pack_hexes(out, &m->anchors);
    cr_pack_int(out, m->not_before_ms);
    cr_pack_int(out, m->not_after_ms);
    cr_pack_texts(out, &m->names);
}

static void unpack_leaf(struct cr_unpacking *from, struct cr_material *m)
{
    cr_unpack_hex(from, m->leaf, sizeof m->leaf);
    cr_unpack_hex(from, m->chain, sizeof m->chain);
    cr_unpack_hex(from, m->key, sizeof m->key);
    cr_unpack_hex(from, m->serial, sizeof m->serial);
    cr_unpack_short(from, m->key_type, sizeof m->key_type);
    cr_unpack_hex(from, m->issuer, sizeof m->issuer);
    cr_unpack_hexes(from, &m->anchors);
    m->not_before_ms = cr_unpack_int(from);
    m->not_after_ms = cr_unpack_int(from);
    cr_unpack_texts(from, &m->names);
}

static void pack_trust(struct cr_buf *out, const struct cr_material *m)
{
    cr_pack_int(out, (int64_t)m->trust_len);
    for (size_t i = 0; i < m->trust_len; i++)
        pack_ca(out, &m->trust[i]);
    cr_pack_int(out, (int64_t)m->trust_summary.count);
    cr_pack_hex(out, m->trust_summary.digest);
    cr_pack_int(out, m->trust_summary.not_after_ms);
}

static void unpack_trust(struct cr_unpacking *from, struct cr_material *m)
{
    m->trust_len = (size_t)cr_unpack_int(from);
    m->trust = m->trust_len ? cr_calloc(m->trust_len, sizeof *m->trust) : NULL;
    for (size_t i = 0; i < m->trust_len; i++)
        unpack_ca(from, &m->trust[i]);
    m->trust_summary.count = (size_t)cr_unpack_int(from);
    cr_unpack_hex(from, m->trust_summary.digest, sizeof m->trust_summary.digest);
    m->trust_summary.not_after_ms = cr_unpack_int(from);
}

void cr_material_pack(struct cr_buf *out, const struct cr_material *m)
{
    cr_pack_int(out, m->has_leaf);
    pack_leaf(out, m);
    pack_trust(out, m);
    cr_pack_text(out, m->opaque);
    cr_pack_texts(out, &m->opaque_keys);
}

void cr_material_unpack(struct cr_unpacking *from, struct cr_material *m)
{
    *m = (struct cr_material){.has_leaf = cr_unpack_int(from)};
    unpack_leaf(from, m);
    unpack_trust(from, m);
    cr_unpack_short(from, m->opaque, sizeof m->opaque);
    cr_unpack_texts(from, &m->opaque_keys);
}
