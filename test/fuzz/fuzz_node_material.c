/* The first byte says what the file is for, the rest is the file. Whatever it is, it is read or there is a problem, and
 * what is read is whole. */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "controlplane/agent/node_material.h"

static const struct {
    enum cr_role role;
    const char *parameter;
} uses[] = {
    {CR_ROLE_SERVER_LEAF, "--tls-cert-file"},
    {CR_ROLE_SERVER_LEAF, "--tls-private-key-file"},
    {CR_ROLE_SERVER_LEAF, "--tls-sni-cert-key"},
    {CR_ROLE_SERVER_LEAF, "serverTLSBootstrap"},
    {CR_ROLE_CLIENT_CA, "--client-ca-file"},
    {CR_ROLE_OPAQUE, "--cluster-signing-cert-file"},
    {CR_ROLE_OPAQUE, "--cluster-signing-key-file"},
    {CR_ROLE_OPAQUE, "--service-account-key-file"},
    {CR_ROLE_OPAQUE, "--service-account-private-key-file"},
};

static void check_digests(const struct cr_strvec *digests)
{
    for (size_t i = 0; i < digests->len; i++)
        require(strlen(digests->items[i]) == 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    size_t use = data[0] % cr_array_len(uses);
    CR_CLEANUP(cr_node_material) struct cr_node_material m;
    cr_node_material_read((const char *)data + 1, size - 1, uses[use].role, uses[use].parameter, &m);
    bool unread = m.kind == CR_NODE_FILE_UNREAD;
    require(!unread || (m.problem && *m.problem && !strpbrk(m.problem, "\r\n")));
    require(unread == !m.keys.len);
    require(!unread || (!m.prints.len && !m.certificates && !m.not_after_ms));
    require(m.kind != CR_NODE_FILE_TRUST || (m.names.len == m.prints.len && m.prints.len <= m.certificates));
    require(!m.prints.len || m.keys.len == m.prints.len);
    check_digests(&m.prints);
    check_digests(&m.keys);
    check_digests(&m.names);
    require(cr_node_material_fits(&m, &m));
    return 0;
}
