"""A limit of the host that several clusters side by side reach, raised while there are any."""

from __future__ import annotations

from pathlib import Path

from . import layout, locks, paths, ui

# Of these a user may have 128 by default, and a cluster takes about 20; without one the kubelet does not start.
_INOTIFY_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
_ENOUGH = 8192


def raise_while_clusters_run() -> None:
    """To be called when the cluster has its folder, which is what keeps another's end from undoing it."""
    with locks.locked(_lock(), "another cluster's start", remove=True):
        current = int(_INOTIFY_INSTANCES.read_text())
        if current >= _ENOUGH:
            return
        if not _note().exists():
            _note().write_text(str(current))
        try:
            _INOTIFY_INSTANCES.write_text(str(_ENOUGH))
        except OSError as error:
            ui.warn(
                f"{_INOTIFY_INSTANCES} stays at {current} ({error.strerror}), which is enough for a few clusters; "
                f"on the host, sysctl -w fs.inotify.max_user_instances={_ENOUGH} raises it"
            )


def restore_after_last() -> None:
    """Put the former limit back if no cluster is left."""
    if not _note().exists():
        return
    with locks.locked(_lock(), "another cluster's end", remove=True):
        if _note().exists() and not layout.all_clusters():
            _INOTIFY_INSTANCES.write_text(_note().read_text())
            _note().unlink()


def _note() -> Path:
    return paths.state_dir() / ".inotify-instances"


def _lock() -> Path:
    """No cluster's own, whose name has no underscore."""
    return paths.state_dir() / ".host_limits.lock"
