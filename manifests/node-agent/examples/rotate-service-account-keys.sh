#!/bin/bash
# Replaces the key of a kubeadm cluster's service accounts without an outage: the new one verifies everywhere, then
# signs, then tokens are renewed, then the old one is dropped. It only writes files; certroll makes the components follow,
# and says when the next step is safe (docs/control-plane.md). Where there are workers, their agents have to count tokens
# meanwhile: the component count-tokens.
#
#   rotate-service-account-keys.sh FOLDER        FOLDER gets the new key: keep it safe. Interrupted? Run it again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/nodes.sh"

folder=${1:?usage: rotate-service-account-keys.sh FOLDER}
pki=/etc/kubernetes/pki
names=$(control_plane_nodes)
read -ra planes <<< "$names"

# As the policy's status names a key: SHA-256 of its public part, which is a token's "kid" in hexadecimal.
fingerprint() { openssl pkey -pubin -in "$1" -outform DER | sha256sum | cut -d' ' -f1; }
everywhere() { for node in "${planes[@]}"; do put "$node" "$1" "$2"; done; }

main() { # read whole before it begins
    require_policy
    mkdir -p "$folder" && chmod 0700 "$folder"
    umask 077
    if [ ! -e "$folder/both.pub" ]; then
        get "${planes[0]}" $pki/sa.pub > "$folder/old.pub"
        openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$folder/new.key"
        openssl pkey -in "$folder/new.key" -pubout -out "$folder/new.pub"
        cat "$folder/old.pub" "$folder/new.pub" > "$folder/both.half"
        mv "$folder/both.half" "$folder/both.pub"
    fi
    old=$(fingerprint "$folder/old.pub")
    new=$(fingerprint "$folder/new.pub")
    echo "from $old to $new"

    if [ ! -e "$folder/dropping" ]; then # once the last step has begun, there is no way back to the first
        everywhere $pki/sa.pub "$folder/both.pub"
        await serviceAccounts.verifying "$(printf '%s\n' "$old" "$new" | joined)" "every API server takes tokens of both keys"

        everywhere $pki/sa.key "$folder/new.key"
        await serviceAccounts.signing "$new" "tokens are signed by the new key only"
        await serviceAccounts.removable "$old" "no token of the old key is in use; it may go"
    fi

    touch "$folder/dropping"
    everywhere $pki/sa.pub "$folder/new.pub"
    await serviceAccounts.known "$new" "tokens of the new key only are taken"
}

main
