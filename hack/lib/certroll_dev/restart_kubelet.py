"""What `systemctl restart kubelet` is elsewhere: a command on the node, for whoever is on it and for hack/cluster.

There is no systemd here, and nothing else that supervises a kubelet: the command finds it by its program, ends it, and
starts it again by the same command line, in the cgroups of the machine and not in those of the pod that asked for it.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from . import controlplane, daemons, files, machines
from .layout import Machine
from .ui import DevError

COMMAND = "/run/service/restart-kubelet"  # on the machine

_SCRIPT = """\
#!/bin/sh
# Ends this node's kubelet and starts it again. Containers live on.
# From a pod with hostPID: nsenter --target=1 --mount --uts --net --pid -- {command}
set -eu
exec 9> /run/service/.restart-kubelet.lock
flock 9

kubelets() {{
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/exe" 2> /dev/null)" = {program} ]; then echo "${{process#/proc/}}"; fi
    done
}}

signal=TERM
tries=0
while pids=$(kubelets) && [ -n "$pids" ]; do
    if [ $((tries % 100)) -eq 0 ]; then
        kill -s "$signal" $pids || true
        signal=KILL
    fi
    tries=$((tries + 1))
    sleep 0.1
done

# Whoever called may be in a container, whose cgroup ends with it.
while IFS=: read -r _ controllers path; do
    hierarchy=/sys/fs/cgroup/${{controllers#name=}}
    # Of v2 the name is empty; beside v1 it is mounted here.
    if [ -z "$controllers" ] && [ -d /sys/fs/cgroup/unified ]; then hierarchy=/sys/fs/cgroup/unified; fi
    if [ -e "$hierarchy$path/cgroup.procs" ]; then
        echo $$ > "$hierarchy$path/cgroup.procs" || true    # a kubelet in the wrong place is better than none
    fi
done < /proc/1/cgroup
cd /
setsid --fork env -i {environment} {command_line} >> {log} 2>&1 < /dev/null 9>&-
"""


def write_command(machine: Machine, argv: Sequence[str | Path], log: Path) -> None:
    """The command, for a kubelet of this command line."""
    environment = [f"{name}={value}" for name, value in daemons.environment({}).items()]
    text = _SCRIPT.format(
        command=COMMAND,
        program=shlex.quote(str(Path(argv[0]).resolve())),
        environment=shlex.join(environment),
        command_line=shlex.join([str(word) for word in argv]),
        log=shlex.quote(str(log)),
    )
    files.put(machine.service / "restart-kubelet", text, mode=0o755)


def run(machine: Machine, record: Path, port: int, timeout: float = 60) -> None:
    """Restart it, and return when the new one listens."""
    machines.run(machine, [COMMAND])
    end = time.monotonic() + timeout
    while not (daemons.recorded(record) and controlplane.listens(_inside(machine), port)):
        if time.monotonic() > end:
            raise DevError(f"the kubelet of {machine.name} does not listen {timeout:g} s after its restart")
        time.sleep(0.1)


def _inside(machine: Machine) -> int:
    pid = machines.pid_of(machine)
    if pid is None:
        raise DevError(f"{machine.name} is not up: run hack/cluster up")
    return pid
