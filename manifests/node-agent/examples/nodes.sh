# What rotate-ca.sh and rotate-service-account-keys.sh share: how they reach the nodes, and how they wait for certroll.
# Sourced by bash, not run. It needs bash, openssl 3 and kubectl here, and openssl, sed and coreutils on the nodes.

# on_node NODE SCRIPT [ARGUMENT...]: runs a shell script on the node as root, with our stdin and stdout.
# It ends at the first command that fails. Nodes that ssh does not reach: export ON_NODE=PROGRAM, which is called with the
# same words.
on_node() {
    set -- "$1" "set -eu; $2" "${@:3}"
    if [ -n "${ON_NODE:-}" ]; then
        "$ON_NODE" "$@"
    else
        ssh "root@$1" "$(printf '%q ' sh -c "$2" sh "${@:3}")"
    fi
}

# rewrite NODE FILE SCRIPT [ARGUMENT...]: what a shell script on the node writes into "$new" becomes the file (its "$1"), in
# one step and with the mode and owner that it has; the same again is not written. When the script fails, or writes
# nothing, the file stays as it is. The name of what is half written begins with a dot, since the kubelet starts whatever
# else is in its folder.
rewrite() {
    on_node "$1" '
        file=$(readlink -f "$1"); new=${file%/*}/.${file##*/}.new
        umask 077
        trap "rm -f \"\$new\"" EXIT
        if [ -e "$file" ]; then cp -p "$file" "$new"; fi
        '"$3"'
        if [ ! -s "$new" ]; then
            echo "nothing would be left of $file, so it stays as it is; if it is empty, write it back or have kubeadm make it anew" >&2
            exit 1
        fi
        if ! cmp -s "$new" "$file"; then mv "$new" "$file"; fi' "$2" "${@:4}"
}

# put NODE FILE OURS: our file becomes that one. When a connection breaks, the other end sees no more than the end of its
# stdin, and so knows by the sum whether that was all.
put() {
    local sum
    sum=$(sha256sum < "$3")
    rewrite "$1" "$2" '
        cat > "$new"
        if [ "$(sha256sum < "$new")" != "$2" ]; then
            echo "$file stays as it is: not all of what should replace it has come; run this again" >&2
            exit 1
        fi' "$sum" < "$3"
}

get() { on_node "$1" 'cat "$1"' "$2"; }

all_nodes() { kubectl get nodes -o jsonpath='{.items[*].metadata.name}'; }
control_plane_nodes() { kubectl get nodes -l node-role.kubernetes.io/control-plane -o jsonpath='{.items[*].metadata.name}'; }

# require_policy: before anything is written, somebody has to be there who follows it. A policy that is not Ready for a
# moment, as while a node is silent, has a minute.
require_policy() {
    if ! kubectl -n kube-system wait "controlplanepolicy/${POLICY:-control-plane}" --for=condition=Ready --timeout=60s > /dev/null; then
        echo "the ControlPlanePolicy kube-system/${POLICY:-control-plane} is not Ready, so nothing would follow: nothing is written." \
            "\"kubectl -n kube-system describe controlplanepolicies\" says why. Where there is none," \
            "docs/control-plane.md, \"Before the first time\", has what to install; another policy's name: export POLICY=NAME." >&2
        return 1
    fi
}

# await FIELD VALUE WHAT: until certroll says so, for $WAIT_MINUTES (30) at most. What it waits for itself is shown
# once a minute. The field is a state and no condition, so that what was true before we wrote is not taken for an answer.
await() {
    local end=$((SECONDS + ${WAIT_MINUTES:-30} * 60))
    echo "waiting: $3"
    until kubectl -n kube-system wait "controlplanepolicy/${POLICY:-control-plane}" --timeout=60s \
            --for=jsonpath="{.status.$1}"="$2" > /dev/null 2>&1; do
        kubectl -n kube-system get "controlplanepolicy/${POLICY:-control-plane}" \
            -o jsonpath='{range .status.conditions[?(@.message)]}{"  "}{.type}={.status}: {.message}{"\n"}{end}' || true
        if [ "$SECONDS" -ge "$end" ]; then
            echo "not within ${WAIT_MINUTES:-30} minutes: $3. Nothing is lost: when the cause is gone, run this again." >&2
            return 1
        fi
        sleep 2 # kubectl wait returns at once where there is no policy, or no API server
    done
    echo "certroll: $3"
}

# Sorted and joined by commas, as the policy's status has them.
joined() { sort -u | paste -sd, -; }
