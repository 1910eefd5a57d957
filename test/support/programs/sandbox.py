"""A pod's one container as a process of this machine: its mounts, its user, its network, and no image.

/usr is this machine's with Debian packages laid over it, so that programs find themselves where they are when they are
installed. Nothing is installed, and all mounts end with the process.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from programs.volumes import AtomicVolume

USER = 65532
_FILES = {
    "etc/passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\napp:x:{USER}:{USER}:app:/tmp:/usr/sbin/nologin\n",
    "etc/group": f"root:x:0:\napp:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/hosts": "127.0.0.1 localhost client peer\n",
}
_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
_STOP = 20.0  # seconds until a program that does not end is killed

PodSpec = Mapping[str, Any]


class Sandbox:
    """Runs what `pod` describes. `programs` are binaries that are to be in /opt/bin, `usr` is laid over /usr.

    The process is in the network namespace of the thread that starts it.
    """

    def __init__(
        self,
        folder: Path,
        pod: PodSpec,
        *,
        configs: Mapping[str, Mapping[str, str]],
        usr: Path | None = None,
        programs: Mapping[str, Path] | None = None,
    ) -> None:
        self.folder, self.pod, self.usr = folder, pod, usr
        self.log = folder / "log"
        self.root = folder / "root"
        self._programs = dict(programs or {})
        self._process: subprocess.Popen[bytes] | None = None
        (self._container,) = pod["containers"]
        self._volumes = {volume["name"]: self._volume(volume) for volume in pod.get("volumes", [])}
        self._make_root()
        for volume in pod.get("volumes", []):
            if "configMap" in volume:
                files = {name: text.encode() for name, text in configs[volume["configMap"]["name"]].items()}
                self._volumes[volume["name"]].write(files)

    # --- files

    def write_secret(self, name: str, files: Mapping[str, bytes]) -> None:
        """As a kubelet does that has seen the Secret change."""
        for volume in self.pod.get("volumes", []):
            if volume.get("secret", {}).get("secretName") == name:
                self._volumes[volume["name"]].write(files)

    def read(self, path: str) -> bytes:
        """A file as the program sees it."""
        for mount in self._container.get("volumeMounts", []):
            if Path(path).is_relative_to(mount["mountPath"]):
                return (self._volumes[mount["name"]].folder / Path(path).relative_to(mount["mountPath"])).read_bytes()
        return (self.root / path.lstrip("/")).read_bytes()

    def _volume(self, volume: Mapping[str, Any]) -> AtomicVolume:
        return AtomicVolume(self.folder / "volumes" / volume["name"], group=USER)

    def _make_root(self) -> None:
        for name in ("usr", "proc", "dev", "opt/bin"):
            (self.root / name).mkdir(parents=True)
        for name in ("tmp", "run"):
            (self.root / name).mkdir()
            (self.root / name).chmod(0o1777)
        data = self.root / "var/lib/data"
        data.mkdir(parents=True, mode=0o700)
        os.chown(data, USER, USER)
        for name, target in _LINKS.items():
            (self.root / name).symlink_to(target)
        for name, text in _FILES.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)
        for name in self._programs:
            (self.root / "opt/bin" / name).touch()
        for mount in self._container.get("volumeMounts", []):
            (self.root / mount["mountPath"].lstrip("/")).mkdir(parents=True)

    # --- the process

    @property
    def pid(self) -> int:
        assert self._process, "not started"
        return self._process.pid

    def start(self) -> None:
        self.log.touch()
        self.log.chmod(0o666)  # Apache opens its stderr anew
        with self.log.open("ab") as log:
            words = [*self._container["command"], *self._container.get("args", [])]
            self._process = subprocess.Popen(
                self._command(words), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment(), start_new_session=True
            )

    def run(self, words: Sequence[str], stdin: bytes = b"") -> bytes:
        """Another command in the same surroundings, to its end."""
        done = subprocess.run(self._command(words), input=stdin, capture_output=True, env=self._environment(), timeout=300)
        if done.returncode != 0:
            raise AssertionError(f"{shlex.join(words)} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:].decode()}")
        return done.stdout

    def check(self) -> None:
        if self._process is None or self._process.poll() is not None:
            raise AssertionError(f"{self._container['name']} has ended; its log says:\n{self.log_tail()}")

    def signal(self, name: str) -> None:
        """To the container's first process: 'SIGHUP'."""
        self.check()
        os.kill(self.pid, signal.Signals[name])

    def stop(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_STOP)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # whatever it has left behind, too
        process.wait()

    def remove(self) -> None:
        """All but the log."""
        self.stop()
        for folder in (self.root, self.folder / "volumes"):
            shutil.rmtree(folder, ignore_errors=True)

    def restart(self) -> None:
        self.stop()
        self.start()

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else "(no log)"

    def _environment(self) -> dict[str, str]:
        own = {variable["name"]: variable["value"] for variable in self._container.get("env", [])}
        return {"PATH": "/opt/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", **own}

    def _command(self, words: Sequence[str]) -> list[str]:
        """No program of these stays as a parent: the pid is the program's own."""
        user = f"--userspec={USER}:{USER}"
        script = [*self._mounts(), shlex.join(["exec", "chroot", user, str(self.root), *words])]
        return ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-ec", "\n".join(script)]

    def _mounts(self) -> list[str]:
        mounts: list[list[str | Path]] = [["--rbind", "/usr", self.root / "usr"]]
        if self.usr:
            mounts = [["-t", "overlay", "overlay", "-o", f"lowerdir={self.usr}:/usr", self.root / "usr"]]
        mounts += [["--rbind", f"/{name}", self.root / name] for name in ("proc", "dev")]
        mounts += [["--bind", path, self.root / "opt/bin" / name] for name, path in self._programs.items()]
        for mount in self._container.get("volumeMounts", []):
            mounts.append(["--bind", self._volumes[mount["name"]].folder, self.root / mount["mountPath"].lstrip("/")])
        return [shlex.join(["mount", *map(str, words)]) for words in mounts]
