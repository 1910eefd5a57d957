#!/bin/bash
# Replaces the CA of a kubeadm cluster in three steps, without an outage: bundle, leaves, old one dropped. It only writes
# files; certroll makes the components follow, and says when the next step is safe (docs/control-plane.md).
#
#   rotate-ca.sh FOLDER        FOLDER gets the new CA with its key: keep it safe. Interrupted? Run it again.
#
# KUBECONFIG is an administrator's; it gets the new CA and a new certificate as well. Leaves keep their keys, names and
# uses; keys stay on their nodes, but for that of the CA, which the controller managers sign with.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/nodes.sh"

folder=${1:?usage: rotate-ca.sh FOLDER}
etc=/etc/kubernetes
pki=$etc/pki
days_of_leaves=${DAYS:-365}
names=$(all_nodes)
read -ra nodes <<< "$names"
names=$(control_plane_nodes)
read -ra planes <<< "$names"

fingerprint() { openssl x509 -in "$1" -outform DER | sha256sum | cut -d' ' -f1; }
fingerprints() { for each in "$@"; do fingerprint "$each"; done | joined; }

# embed NODE KUBECONFIG FIELD OURS: our file replaces what is embedded there; what names a file is left alone. Only that
# travels, since kubeconfigs have keys in them.
embed() {
    is_certificate "$4"
    rewrite "$1" "$2" 'sed "s|^\( *$2: \).*|\1$3|" "$file" > "$new"' "$3" "$(base64 -w0 < "$4")"
}
is_certificate() { openssl x509 -noout < "$1"; }
there() { on_node "$1" 'for each; do if [ -e "$each" ]; then echo "$each"; fi; done' "${@:2}"; }
kubeconfigs() { there "$1" $etc/{admin,super-admin,controller-manager,scheduler,kubelet,kube-proxy}.conf; }

# --- before: a signing certificate in a file of its own
#
# kubeadm's ca.crt is the trust bundle *and* what kube-controller-manager signs with. With two certificates in it, it
# signs nothing, and the next leader does not start. So the manifest names another file first.

separate_the_signer() {
    on_node "$1" '
        cd /etc/kubernetes
        for each in crt key; do
            [ -e "pki/signing-ca.$each" ] || cp -p "pki/ca.$each" "pki/signing-ca.$each"
        done'
    rewrite "$1" $etc/manifests/kube-controller-manager.yaml \
        'sed "s|\(--cluster-signing-cert-file=\).*|\1$2.crt|; s|\(--cluster-signing-key-file=\).*|\1$2.key|" "$file" > "$new"' $pki/signing-ca
    # The manifest is the person's to change, so the kubelet restarts it by itself: one node after the other.
    on_node "$1" '
        tries=0
        until tr "\0" " " < "/proc/$(pidof -s kube-controller-manager || echo none)/cmdline" | grep -q "signing-cert-file=$1" &&
              curl -ksf -o /dev/null https://127.0.0.1:10257/healthz; do
            tries=$((tries + 1)); [ "$tries" -lt 300 ] || { echo "kube-controller-manager does not come back" >&2; exit 1; }
            sleep 1
        done 2> /dev/null' $pki/signing-ca.crt
}

# Both files in one go: what is between the two renames is a key that does not fit.
sign_with_the_new() {
    cat "$folder/new.crt" "$folder/new.key" | on_node "$1" '
        cd "$1"; umask 077
        cat > .signing-ca
        openssl x509 -in .signing-ca -out .signing-ca.crt; openssl pkey -in .signing-ca -out .signing-ca.key
        mv .signing-ca.key signing-ca.key; mv .signing-ca.crt signing-ca.crt; rm .signing-ca' $pki
}

# --- 1 and 3: what is trusted

trust() { # FILE, everywhere
    local files
    for node in "${nodes[@]}"; do
        put "$node" $pki/ca.crt "$1"
        files=$(kubeconfigs "$node")
        for each in $files; do embed "$node" "$each" certificate-authority-data "$1"; done
    done
    name=$(kubectl config view --minify -o jsonpath='{.clusters[0].name}')
    kubectl config set-cluster "$name" --certificate-authority="$1" --embed-certs > /dev/null
    # What `kubeadm join` trusts.
    if info=$(kubectl -n kube-public get configmap cluster-info -o jsonpath='{.data.kubeconfig}' 2> /dev/null); then
        info=$(sed "s|\(certificate-authority-data: \).*|\1$(base64 -w0 < "$1")|" <<< "$info")
        kubectl -n kube-public create configmap cluster-info --from-literal=kubeconfig="$info" --dry-run=client -o yaml |
            kubectl apply --server-side --force-conflicts -f - > /dev/null
    fi
}

# --- 2: leaves

is_of() { openssl verify -partial_chain -CAfile "$1" > /dev/null 2>&1; } # CA: whether stdin's certificate is of it

# The same names, uses and key; of the new CA. Request in, certificate out.
sign() {
    openssl x509 -req -CA "$folder/new.crt" -CAkey "$folder/new.key" -set_serial "0x$(openssl rand -hex 16)" \
        -days "$days_of_leaves" -copy_extensions copy 2> /dev/null
}
request='openssl x509 -x509toreq -in "$1" -signkey "$2" -copy_extensions copy'

# Whether it is of the old CA, and so is to be renewed.
is_old() { # NODE FILE, and its certificate in leaf.crt
    if ! is_certificate "$folder/leaf.crt"; then
        echo "$1: the certificate in $2 cannot be read: write the file back or have kubeadm make it anew, then run this again" >&2
        exit 1
    fi
    is_of "$folder/old.crt" < "$folder/leaf.crt"
}

renew_file() { # NODE CERTIFICATE; its key is beside it, or in the same file, as the kubelet has it
    local key=${2/%.crt/.key}
    on_node "$1" 'openssl x509 -in "$1" || true' "$2" > "$folder/leaf.crt"
    if ! is_old "$1" "$2"; then return; fi
    on_node "$1" "$request" "$2" "$key" | sign > "$folder/leaf.new"
    if [ "$2" = "$key" ]; then
        rewrite "$1" "$2" '{ echo "$2"; openssl pkey -in "$file"; } > "$new"' "$(cat "$folder/leaf.new")"
    else
        put "$1" "$2" "$folder/leaf.new"
    fi
}

renew_embedded() { # NODE KUBECONFIG
    local line
    line=$(on_node "$1" 'sed -n "/^ *client-certificate-data:/p" "$1"' "$2")
    if [ -z "$line" ]; then return; fi # it names a file, or there is a token
    base64 -d <<< "${line##* }" > "$folder/leaf.crt" || true
    if ! is_old "$1" "$2"; then return; fi
    on_node "$1" '
        umask 077; folder=$(mktemp -d); trap "rm -r $folder" EXIT
        for each in certificate key; do sed -n "s|^ *client-$each-data: ||p" "$1" | base64 -d > "$folder/$each"; done
        openssl x509 -x509toreq -in "$folder/certificate" -signkey "$folder/key" -copy_extensions copy' "$2" |
        sign > "$folder/leaf.new"
    embed "$1" "$2" client-certificate-data "$folder/leaf.new"
}

renew_leaves() { # NODE
    local files
    files=$(there "$1" $pki/{apiserver,apiserver-kubelet-client,controller-manager,scheduler,kube-proxy}.crt /var/lib/kubelet/pki/{kubelet.crt,kubelet-client-current.pem})
    for each in $files; do renew_file "$1" "$each"; done
    files=$(kubeconfigs "$1")
    for each in $files; do renew_embedded "$1" "$each"; done
}

renew_administrator() {
    local user
    user=$(kubectl config view --minify -o jsonpath='{.users[0].name}')
    for each in certificate key; do
        kubectl config view --raw --minify -o jsonpath="{.users[0].user.client-$each-data}" | base64 -d > "$folder/admin.$each"
    done
    if is_of "$folder/old.crt" < "$folder/admin.certificate"; then
        openssl x509 -x509toreq -in "$folder/admin.certificate" -signkey "$folder/admin.key" -copy_extensions copy 2> /dev/null |
            sign > "$folder/admin.new"
        kubectl config set-credentials "$user" --client-certificate="$folder/admin.new" --client-key="$folder/admin.key" --embed-certs > /dev/null
    fi
    rm -f "$folder"/admin.*
}

# --- all of it

main() { # read whole before it begins
    require_policy
    mkdir -p "$folder" && chmod 0700 "$folder"
    umask 077
    if [ ! -e "$folder/new.crt" ]; then
        get "${planes[0]}" $pki/ca.crt > "$folder/old.crt"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=${CA_NAME:-kubernetes-$(date -u +%Y-%m-%d)}" \
            -addext keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign -keyout "$folder/new.key" -out "$folder/new.half" 2> /dev/null
        cat "$folder/old.crt" "$folder/new.half" > "$folder/bundle.crt" # the old one first: kubeadm takes that and ca.key for a pair
        mv "$folder/new.half" "$folder/new.crt"
    fi
    old=$(fingerprint "$folder/old.crt")
    new=$(fingerprint "$folder/new.crt")
    echo "from $old to $new"

    if [ ! -e "$folder/dropping" ]; then # once the last step has begun, there is no way back to the first
        for node in "${planes[@]}"; do separate_the_signer "$node"; done
        trust "$folder/bundle.crt"
        await cluster.trusted "$(fingerprints "$folder/old.crt" "$folder/new.crt")" "everybody trusts both CAs; leaves may be renewed"

        for node in "${nodes[@]}"; do renew_leaves "$node"; done
        for node in "${planes[@]}"; do sign_with_the_new "$node"; done
        renew_administrator
        await cluster.removable "$old" "no leaf of the old CA is in use; it may go"
    fi

    touch "$folder/dropping"
    trust "$folder/new.crt"
    for node in "${planes[@]}"; do put "$node" $pki/ca.key "$folder/new.key"; done # for kubeadm
    await cluster.known "$new" "only the new CA is trusted"
}

main
