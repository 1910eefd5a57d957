"""Of docs/limits.md the table: each number comes from the code that holds it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .ui import DevError

_BEGIN = "<!-- limits: made by `hack/docs limits` from the code -->\n"
_END = "<!-- end -->\n"


@dataclass(frozen=True)
class _Limit:
    of: str  # what somebody writes
    what: str  # is bounded
    file: str
    name: str  # of the constant there
    beyond: str


_PAGE = "the pod counts as not read; the condition says so"
_OBJECT = "what was read of it last stays; a warning in the log and `too_large` in `certroll_watch_events_total` tell of it"
_COSTLY = "its problem is `TooCostly`"
_UNPARSABLE = "its problem is `UnparsableMaterial`"
_HANDSHAKE = "the pod counts as not proved; the condition says so"
_CLIENT = "the policy's condition says so; nothing is presented"
_WAITS = "it is got from the API server when it is needed"
_BUNDLE = "all that is published stays, with the new CAs behind it"
_HOSTS = "a leaf without the others is not held (`TooManyHosts`); the oldest objects count"
_USAGES = "it restarts"
_REFUSED = "refused, with the place in the text"

_LIMITS = (
    _Limit("a pod's page of certificates", "bytes", "pkg/net/page_fetch.h", "CR_PAGE_MAX", _PAGE),
    _Limit("", "JSON values", "pkg/evidence/certs_page.h", "CR_CERTS_VALUES_MAX", _PAGE),
    _Limit("", "TLS contexts that differ", "pkg/evidence/certs_page.h", "CR_CERTS_CONTEXTS_MAX", _PAGE),
    _Limit("", "serial numbers in them", "pkg/evidence/certs_page.h", "CR_CERTS_SERIALS_MAX", _PAGE),
    _Limit("a sidecar's page", "bytes", "pkg/evidence/sidecar_page.h", "CR_SIDECAR_PAGE_MAX", _PAGE),
    _Limit("", "JSON values", "pkg/evidence/sidecar_page.h", "CR_SIDECAR_VALUES_MAX", _PAGE),
    _Limit("", "materials", "pkg/evidence/sidecar_page.h", "CR_SIDECAR_ENTRIES_MAX", _PAGE),
    _Limit("a Secret", "keys", "pkg/cluster/secret_view.h", "CR_SECRET_KEYS_MAX", _COSTLY),
    _Limit("", "bytes of a private key's entry", "pkg/pki/key.h", "CR_KEY_TEXT_MAX", _COSTLY),
    _Limit("", "bytes of a certificate that is verified, or verifies", "pkg/pki/paths.h", "CR_PATHS_CERTIFICATE_BYTES_MAX", _COSTLY),
    _Limit("", "certificates above a leaf, by their names", "pkg/pki/paths.h", "CR_PATHS_CERTIFICATES_MAX", _COSTLY),
    _Limit("", "CAs of one name in `ca.crt` of a trust domain's source", "pkg/pki/ca_set.h", "CR_CA_SET_NAMESAKES_MAX", _COSTLY),
    _Limit("", "signatures checked for a leaf", "pkg/pki/paths.h", "CR_PATHS_SIGNATURES_MAX", _COSTLY),
    _Limit("", "bytes of names × bytes of name constraints, of all verifications of a leaf", "pkg/pki/paths.h", "CR_PATHS_NAME_STEPS_MAX", _COSTLY),
    _Limit("", "bits of an RSA key that verifies", "pkg/pki/key.h", "CR_KEY_RSA_BITS_MAX", _COSTLY),
    _Limit("", "bits of its public exponent", "pkg/pki/key.h", "CR_KEY_RSA_EXPONENT_BITS_MAX", _COSTLY),
    _Limit("", "bits of an ECDSA key that verifies, on a named curve over a prime field", "pkg/pki/key.h", "CR_KEY_EC_BITS_MAX", _COSTLY),
    _Limit("", "names of a leaf", "pkg/pki/leaf_names.h", "CR_LEAF_NAMES_MAX", "a name behind them counts as missing (`NameMissing`)"),
    _Limit("", "bytes of an entry", "pkg/pki/material.c", "MAX_ENTRY", _UNPARSABLE),
    _Limit("", "certificates of a chain", "pkg/pki/material.c", "MAX_CHAIN", _UNPARSABLE),
    _Limit("", "certificates of a bundle", "pkg/pki/material.c", "MAX_TRUST", _UNPARSABLE),
    _Limit("a trust domain", "objects to publish into", "pkg/api/domain.h", "CR_DOMAIN_OBJECTS_MAX", "the others get nothing (`TooManyObjects`); those on its record come first"),
    _Limit("a Secret of a trust domain", "policies on it", "pkg/trust/controller/covering_policies.h", "CR_COVERING_POLICIES_MAX", "each step waits; status says so"),
    _Limit("the Secrets of a policy", "Ingresses and Gateways", "pkg/policy/controller/hosts_in_use.h", "CR_HOST_OBJECTS_MAX", _HOSTS),
    _Limit("", "hosts of one of them, for one Secret", "pkg/catalogue/usage.h", "CR_USAGE_HOSTS_MAX", _HOSTS),
    _Limit("", "hosts in use", "pkg/policy/controller/hosts_in_use.h", "CR_HOSTS_MAX", _HOSTS),
    _Limit("a pod template's usages of a Secret", "mounts, sources, variables", "pkg/catalogue/usage.h", "CR_USAGES_MAX", _USAGES),
    _Limit("", "bytes of their texts", "pkg/catalogue/usage.h", "CR_USAGES_BYTES_MAX", _USAGES),
    _Limit("a bundle that is to be published", "signatures checked", "pkg/pki/bundle_cutoff.h", "CR_CUTOFF_SIGNATURES_MAX", _BUNDLE),
    _Limit("", "questions to models of clients", "pkg/pki/bundle_cutoff.h", "CR_CUTOFF_QUESTIONS_MAX", _BUNDLE),
    _Limit("", "looks at a leaf", "pkg/pki/bundle_cutoff.h", "CR_CUTOFF_LOOKS_MAX", _BUNDLE),
    _Limit("Secrets of a namespace that wait to be read", "bytes", "pkg/cluster/secret_reader.h", "CR_SECRET_READER_NAMESPACE_BYTES_MAX", _WAITS),
    _Limit("of all namespaces", "bytes", "pkg/cluster/secret_reader.h", "CR_SECRET_READER_BYTES_MAX", _WAITS),
    _Limit("any API object", "JSON values", "pkg/kube/object.h", "CR_OBJECT_VALUES_MAX", _OBJECT + "; a trust domain writes nothing there (`CannotRead`)"),
    _Limit("", "bytes of an event", "pkg/kube/watch.c", "MAX_FRAME", _OBJECT),
    _Limit("", "bytes of a page of a list", "pkg/kube/watch.c", "MAX_PAGE", "the next page has half as many objects"),
    _Limit("the answer to a request", "bytes", "pkg/net/http_internal.h", "CR_HTTP_MAX_BODY", "the request fails"),
    _Limit("a credential plugin's answer", "bytes", "pkg/kube/exec_plugin.c", "MAX_OUTPUT", "the plugin fails"),
    _Limit("", "JSON values", "pkg/kube/exec_plugin.c", "CREDENTIAL_VALUES", "the plugin fails"),
    _Limit("any other JSON", "JSON values", "pkg/codec/json.h", "CR_JSON_VALUES_MAX", _REFUSED),
    _Limit("", "levels", "pkg/codec/json_scan.h", "CR_JSON_MAX_DEPTH", _REFUSED),
    _Limit("YAML (catalogue, kubeconfig, manifests, a sidecar's file)", "bytes", "pkg/codec/yaml.h", "CR_YAML_MAX_BYTES", _REFUSED),
    _Limit("", "nodes, with keys", "pkg/codec/yaml.h", "CR_YAML_MAX_NODES", _REFUSED),
    _Limit("", "keys of a mapping", "pkg/codec/yaml.h", "CR_YAML_MAX_KEYS", _REFUSED),
    _Limit("", "levels", "pkg/codec/yaml.h", "CR_YAML_MAX_DEPTH", _REFUSED),
    _Limit("", "anchors and aliases", "", "0", _REFUSED),
    _Limit("an HTTP answer's head", "bytes", "pkg/wire/http_parse.h", "CR_HTTP_HEAD_MAX", "the request fails"),
    _Limit("a handshake with a pod", "bits of its RSA key", "pkg/net/tls_limits.h", "CR_TLS_LEAF_RSA_BITS", _HANDSHAKE),
    _Limit("", "bits of its public exponent", "pkg/net/tls_limits.h", "CR_TLS_RSA_EXPONENT_BITS", _HANDSHAKE),
    _Limit("", "bytes of a message with certificates", "pkg/net/tls_limits.h", "CR_TLS_MESSAGE_BYTES", _HANDSHAKE),
    _Limit("", "certificates of its chain", "pkg/net/tls_limits.h", "CR_TLS_CERTIFICATES", _HANDSHAKE),
    _Limit("", "bytes of the connection", "pkg/net/tls_limits.h", "CR_TLS_BYTES", _HANDSHAKE),
    _Limit("a client's certificate for it", "bytes of PEM", "pkg/net/tls_limits.h", "CR_TLS_CLIENT_BYTES", _CLIENT),
    _Limit("", "bytes of its key's PEM", "pkg/net/tls_limits.h", "CR_TLS_CLIENT_KEY_BYTES", _CLIENT),
    _Limit("", "bits of its RSA key", "pkg/net/tls_limits.h", "CR_TLS_CLIENT_RSA_BITS", _CLIENT),
    _Limit("a request to a port of ours", "bytes of its head", "pkg/wire/http_request.h", "CR_HTTP_REQUEST_MAX", "it is answered with 431"),
    _Limit("projected volumes of a pod, to a node agent", "entries", "pkg/controlplane/agent/tokens.c", "ENTRIES_MAX", "one token of a key that is not known"),
    _Limit("", "keys of tokens on a node that are told apart", "pkg/controlplane/agent/tokens.c", "KEYS_MAX", "tokens of a key that is not known"),
    _Limit("a proxy's answer to a shutdown manager", "bytes, Envoy", "pkg/drain/envoy.c", "PAGE_MAX", "it counts as not drained"),
    _Limit("", "bytes, HAProxy", "pkg/drain/haproxy.c", "ANSWER_MAX", "it counts as not drained"),
    _Limit("", "bytes, others", "pkg/drain/generic.c", "ANSWER_MAX", "it counts as not drained"),
    _Limit("a file of a time zone", "bytes", "pkg/codec/tzif.h", "CR_TZIF_MAX", "the zone is not known"),
)


def render(page: str, root: Path) -> str:
    if _BEGIN not in page:
        raise DevError(f"docs/limits.md has lost its line '{_BEGIN.strip()}'")
    head, _, rest = page.partition(_BEGIN)
    table = "| of | at most | | beyond |\n| --- | ---: | --- | --- |\n"
    table += "".join(f"| {each.of} | {_number(each, root)} | {each.what} | {each.beyond} |\n" for each in _LIMITS)
    return head + _BEGIN + table + _END + rest.partition(_END)[2]


def _number(limit: _Limit, root: Path) -> str:
    value = _value(limit, root)
    if limit.what.startswith("bytes") and value % 1024 == 0:
        return f"{value >> 20} MiB" if value % (1 << 20) == 0 else f"{value >> 10} KiB"
    return f"{value:,}"


def _value(limit: _Limit, root: Path) -> int:
    if not limit.file:
        return int(limit.name)
    found = re.search(rf"\b{limit.name} = ([0-9 *]+)", (root / limit.file).read_text())
    if not found:
        raise DevError(f"{limit.file} has no number {limit.name}")
    value = 1
    for factor in found[1].split("*"):
        value *= int(factor)
    return value
