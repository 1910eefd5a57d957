"""A second control plane beside the cluster's own, on its etcd: each program with all parameters of the table.

Each calls the others through a tap. What must not run beside another of its kind (who signs CSRs) is started when its
turn has come.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from certroll_dev import commands, tools
from certroll_dev.demo import pki
from certroll_dev.layout import Cluster
from rows import objects, settings
from rows.beside import Beside
from rows.client import Client
from rows.folder import Folder
from rows.leaves import Authorities, Leaf
from rows.tap import Answer, Tap, Taps, Upstream

PROGRAMS = ("coredns", "etcd", "etcdctl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")


def images() -> dict[str, str]:
    """As they are in a registry, by the program."""
    kubernetes, etcd = tools.version_of("kube-apiserver"), tools.version_of("etcd")
    found = {name: f"registry.k8s.io/{name}:{kubernetes}" for name in PROGRAMS if name.startswith("kube")}
    found["kube-proxy"] = f"registry.k8s.io/kube-proxy:{kubernetes}"
    found["etcd"] = f"registry.k8s.io/etcd:{etcd}-0"
    found["coredns"] = f"registry.k8s.io/coredns/coredns:{tools.version_of('coredns')}"
    return found


@dataclass
class Planes:
    cluster: Cluster
    place: Path
    pki: Authorities = field(default_factory=Authorities)
    taps: dict[str, Tap] = field(default_factory=dict)
    programs: dict[str, Beside] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.place.mkdir(parents=True)
        self._loop = Taps()
        self._binaries = tools.ensure(PROGRAMS)
        self.server, self.new_server = self.pki.server(*_NAMES), self.pki.server(*_NAMES, new=True)
        self.admin = self.pki.client("rows-admin")
        self.new_client = self.pki.client("new-client", new=True)
        self.keys = {name: pki.new_key() for name in ("old", "new")}
        self._make_taps()
        self._make_programs()

    # --- what everybody uses

    def client(self, port: int, leaf: Leaf | None = None, **headers: str) -> Client:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(port, leaf=leaf or self.admin, headers=named)

    @functools.cached_property
    def api(self) -> Client:
        return Client(settings.A, leaf=self.admin, keep=True)

    def tap(
        self, name: str, port: int, upstream: Upstream | None = None, answer: Answer | None = None,
        *, trust: str = "", address: str = "0.0.0.0",
    ) -> Tap:  # fmt: skip
        trusted = self.pki.bundle.decode() + trust
        made = Tap(self._loop, address, port, self.server, self.new_server, trusted, upstream, answer)
        self.taps[name] = made
        return made

    def to_api(self) -> Upstream:
        return Upstream("127.0.0.1", settings.A, self.pki.bundle.decode(), self.admin)

    def to_cluster(self) -> Upstream:
        """The cluster's own API server, as its administrator."""
        return Upstream(settings.NODE, 6443, (self.cluster.pki / "ca.crt").read_text(), file_pair(self.cluster.pki / "admin"))

    def etcdctl(self) -> list[str | Path]:
        """As a probe of type exec has it."""
        files = self.programs["etcd"].files
        names = {"cacert": files / "ctl-ca.crt", "cert": files / "ctl.crt", "key": files / "ctl.key"}
        endpoint = f"--endpoints=https://127.0.0.1:{settings.ETCDCTL}"
        return [self._binaries["etcdctl"], endpoint, "--command-timeout=5s", *settings.flags(dict(names)), "endpoint", "health"]

    def _etcd_pki(self, name: str) -> bytes:
        return (self.cluster.machine(1).kubernetes / "pki/etcd" / name).read_bytes()

    def _of_etcd(self) -> Leaf:
        """A client that the cluster's etcd lets in."""
        return file_pair(self.cluster.machine(1).kubernetes / "pki/apiserver-etcd-client")

    # --- taps

    def _make_taps(self) -> None:
        etcd = Upstream("127.0.0.1", settings.CLUSTERS_ETCD, self._etcd_pki("ca.crt").decode(), self._of_etcd())
        # An API server has a hundred connections to it, and does not do well without them.
        tap = self.tap("etcd", settings.ETCD, etcd)
        tap.many, tap.hold = 2, None
        self.tap("kubelet", settings.KUBELET, answer=lambda _: b"{}")
        self.tap("aggregated", settings.AGGREGATED, answer=objects.api_resources)
        self.tap("peer", settings.B, answer=lambda _: b"{}", address=settings.NODE)
        self.tap("oidc", settings.OIDC, answer=objects.provider)
        for name, port in (("manager", settings.MANAGER), ("signer", settings.SIGNER), ("scheduler", settings.SCHEDULER)):
            self.tap(name, port, self.to_api())
        self.tap("coredns", settings.COREDNS, self.to_api())
        self.tap("bootstrap", settings.BOOTSTRAP, self.to_api())
        self.tap("member", settings.ETCD_PEER)
        self.tap("etcdctl", settings.ETCDCTL, Upstream("127.0.0.1", settings.ETCD_OWN, self.pki.bundle.decode(), self.admin))

    # --- programs

    def _make_programs(self) -> None:
        prefix = f"/rows-{secrets.token_hex(4)}"
        for name in ("a", "b"):
            files = self._folder(f"api-{name}", {**self._serving_files(), **self._api_files()})
            if name == "a":  # straight to the cluster's etcd: taps are slow
                files.write({"etcd-ca.crt": self._etcd_pki("ca.crt"), **pair("etcd", self._of_etcd())})
            first = settings.api_server(files, settings.A, settings.CLUSTERS_ETCD, prefix)
            values, port = (first, settings.A) if name == "a" else (settings.second_api_server(files, prefix), settings.B)
            self._add(f"api-{name}", "kube-apiserver", files, values, port, host=f"rows-{name}")
        self._add_manager()
        self._add_signers()
        files = self._folder("scheduler", {**self._serving_files(), **self._calling_files()})
        files.write({"kubeconfig": settings.kubeconfig(f"https://127.0.0.1:{settings.SCHEDULER}", files)})
        self._add("scheduler", "kube-scheduler", files, settings.scheduler(files), settings.SCHEDULER_OWN)
        self._add_etcd()
        files = self._folder("coredns", {**self._serving_files(), **self._calling_files()})
        files.write({"Corefile": settings.corefile(files), "web.yaml": settings.web_config(files)})
        self._add("coredns", "coredns", files, {}, settings.METRICS, words=["-conf", str(files / "Corefile")])

        self._add_bootstrapping()

    def _add_bootstrapping(self) -> None:
        files, tap = self._folder("bootstrap", self._calling_files()), self.taps["bootstrap"]
        server = f"https://127.0.0.1:{settings.BOOTSTRAP}"
        files.write({"kubeconfig": settings.kubeconfig(server, files), "config.json": settings.bootstrapping_config()})
        flags = settings.flags(settings.bootstrapping_kubelet(files, self.place))
        called = lambda: tap.client is not None  # noqa: E731
        self.programs["bootstrap"] = Beside("bootstrap", images()["kubelet"], self._binaries["kubelet"], flags, self.place, called, files)

    def _add_manager(self) -> None:
        files = self._folder("manager", {**self._serving_files(), **self._calling_files()})
        files.write({"kubeconfig": settings.kubeconfig(f"https://127.0.0.1:{settings.MANAGER}", files)})
        files.write({"root-ca.crt": self.pki.old.certificate, "sa.key": self.keys["old"]})
        values = settings.manager(
            files, settings.MANAGER_OWN,
            "root-ca-certificate-publisher-controller", "serviceaccount-controller", "serviceaccount-token-controller",
        )  # fmt: skip
        values |= {"root-ca-file": files / "root-ca.crt", "service-account-private-key-file": files / "sa.key"}
        self._add("manager", "kube-controller-manager", files, values, settings.MANAGER_OWN)

    def _add_signers(self) -> None:
        """Two that sign, one after the other; the first has all of its kubeconfig in it."""
        for name, port, kinds in (("signer", settings.SIGNER_OWN, ("",)), ("signers", settings.SIGNERS_OWN, SIGNERS)):
            server = f"https://127.0.0.1:{settings.SIGNER if name == 'signer' else settings.A}"
            files = self._folder(name, {**self._serving_files(), **self._calling_files()})
            text = self.embedded(server, self.admin, self.pki.old.certificate) if name == "signer" else settings.kubeconfig(server, files)
            files.write({"kubeconfig": text})
            values = settings.manager(files, port, "certificatesigningrequest-signing-controller")
            for kind in kinds:
                files.write({f"sign{kind}.crt": self.pki.old.certificate, f"sign{kind}.key": self.pki.old.key})
                values |= {f"cluster-signing{kind}-cert-file": files / f"sign{kind}.crt"}
                values |= {f"cluster-signing{kind}-key-file": files / f"sign{kind}.key"}
            self._add(name, "kube-controller-manager", files, values, port)

    def _add_etcd(self) -> None:
        ctl = {"ctl-ca.crt": self.pki.old.certificate, **pair("ctl", self.pki.client("ctl"))}
        # The second's gateway has one of a CA that it does not trust: it gets in at itself when that is changed.
        for name, port, new in (("etcd", settings.ETCD_OWN, False), ("gateway", settings.GATEWAY_OWN, True)):
            files = self._folder(name, {**self._serving_files(), **pair("client", self.pki.client("gateway", new=new)), **ctl})
            files.write({"ca.crt": self.pki.old.certificate})
            peers = settings.GATEWAY_PEER if new else settings.ETCD_OWN_PEER
            self._add(name, "etcd", files, settings.etcd(files, self.place / f"{name}-data", port, peers), port)
        self.programs["etcd"].probe = ["etcdctl", *map(str, self.etcdctl()[1:])]
        files = self._folder("member", {**self._serving_files(), **pair("client", self.pki.client("member"))})
        files.write({"ca.crt": self.pki.old.certificate})
        self._add("member", "etcd", files, settings.etcd_member(files, self.place), settings.MEMBER_OWN)

    def _add(
        self, name: str, program: str, files: Folder, values: dict[str, object], port: int,
        *, words: list[str] | None = None, host: str | None = None,
    ) -> None:  # fmt: skip
        seen = Client(port, leaf=self.admin)
        ready = (lambda: seen.works("/readyz")) if program == "kube-apiserver" else (lambda: seen.served() is not None)
        given = words or settings.flags(values)
        self.programs[name] = Beside(name, images()[program], self._binaries[program], given, self.place, ready, files, host=host)

    # --- files

    def _folder(self, name: str, files: Mapping[str, bytes]) -> Folder:
        folder = Folder(self.place / name)
        folder.write(files)
        return folder

    def _serving_files(self) -> dict[str, bytes]:
        old = self.pki.old.certificate
        trust = {"client-ca.crt": old, "front-proxy-ca.crt": old}
        return {**pair("tls", self.pki.server()), **pair("sni", self.pki.server(f"DNS:{settings.SNI}")), **trust}

    def _calling_files(self) -> dict[str, bytes]:
        return {**pair("api", self.pki.client("api")), "server-ca.crt": self.pki.old.certificate}

    def _api_files(self) -> dict[str, bytes]:
        pairs = {key: value for name in ("etcd", "kubelet", "proxy") for key, value in pair(name, self.pki.client(name)).items()}
        trust = {f"{name}-ca.crt": self.pki.old.certificate for name in ("etcd", "kubelet", "peer", "oidc")}
        return {**pairs, **trust, "sa.key": self.keys["old"], "sa.pub": public(self.keys["old"])}

    def embedded(self, server: str, leaf: Leaf, authority: bytes) -> bytes:
        texts = (base64.b64encode(text).decode() for text in (authority, leaf.certificate, leaf.key))
        return settings.embedded(server, *texts)

    # --- life

    @contextlib.contextmanager
    def running(self) -> Iterator[Planes]:
        try:
            self._start("api-a", "api-b", "etcd", "member")
            self._write_objects()
            self._start("manager", "scheduler", "coredns", "bootstrap")
            yield self
        finally:
            for program in self.programs.values():
                program.stop()
            self._loop.close()

    def _start(self, *names: str) -> None:
        """Side by side, in the network of this thread."""
        with ThreadPoolExecutor(max_workers=len(names)) as executor:
            list(executor.map(lambda name: self.programs[name].start(), names))

    def _write_objects(self) -> None:
        for path, body in objects.to_write(self.pki.old.certificate):
            self.api.json("POST", path, body)
        self.api.json("PATCH", "/api/v1/nodes/rows-node/status", objects.NODE_STATUS)


_NAMES = ("DNS:rows-api.default.svc",)
TURNS = ("signer", "signers", "gateway")  # started when it is their turn
SIGNERS = ("-kube-apiserver-client", "-kubelet-client", "-kubelet-serving", "-legacy-unknown")


def pair(name: str, leaf: Leaf) -> dict[str, bytes]:
    return {f"{name}.crt": leaf.certificate, f"{name}.key": leaf.key}


def file_pair(path: Path) -> Leaf:
    """Of two files."""
    return Leaf(path.with_name(path.name + ".crt").read_bytes(), path.with_name(path.name + ".key").read_bytes())


def public(key: bytes) -> bytes:
    return commands.run(["openssl", "pkey", "-pubout"], stdin=key.decode()).encode()
