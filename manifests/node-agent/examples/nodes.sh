# What rotate-ca.sh and rotate-service-account-keys.sh share: how they reach the nodes, and how they wait for certroll.
# Sourced by bash, not run. It needs bash, openssl 3 and kubectl here, and openssl, sed and coreutils on the nodes.

# on_node NODE SCRIPT [ARGUMENT...]: runs a shell script on the node as root, with our stdin and stdout.
# Nodes that ssh does not reach: export ON_NODE=PROGRAM, which is called with the same words.
on_node() {
    if [ -n "${ON_NODE:-}" ]; then
        "$ON_NODE" "$@"
    else
        ssh "root@$1" "$(printf '%q ' sh -euc "$2" sh "${@:3}")"
    fi
}

# put NODE FILE: stdin becomes the file, in one step and with the mode and owner that it has; the same again is not
# written. The name of what is half written begins with a dot, since the kubelet starts whatever else is in its folder.
put() {
    on_node "$1" '
        file=$(readlink -f "$1"); new=${file%/*}/.${file##*/}.new
        umask 077
        if [ -e "$file" ]; then cp -p "$file" "$new"; fi
        cat > "$new"
        if cmp -s "$new" "$file"; then rm "$new"; else mv "$new" "$file"; fi' "$2"
}

get() { on_node "$1" 'cat "$1"' "$2"; }

all_nodes() { kubectl get nodes -o jsonpath='{.items[*].metadata.name}'; }
control_plane_nodes() { kubectl get nodes -l node-role.kubernetes.io/control-plane -o jsonpath='{.items[*].metadata.name}'; }

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
    done
    echo "certroll: $3"
}

# Sorted and joined by commas, as the policy's status has them.
joined() { sort -u | paste -sd, -; }
