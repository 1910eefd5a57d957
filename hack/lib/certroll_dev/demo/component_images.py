"""The images of the demo's components, under the names that the real ones have.

certroll recognises a component by its image, so the names matter; what is inside is the real program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from certroll_dev import paths
from certroll_dev.demo import programs
from certroll_dev.images import cached_image

# The version is that of hack/images/envoy.txt and hack/tools/ratelimit/go.mod: they name the program, this names the image.
ENVOY = "docker.io/envoyproxy/envoy:v1.40.0"
RATELIMIT = "docker.io/envoyproxy/ratelimit:3fb70258"
MTLS_CLIENT = "certroll.dev/mtls-client:1"
REREADING_CLIENT = "certroll.dev/rereading-client:1"
JAVA_CLIENT = "certroll.dev/java-client:1"
CERTCHECK = "certroll.dev/certcheck:1"


@dataclass(frozen=True)
class Image:
    reference: str
    archive: Path


def build_all(ratelimit: Path) -> Iterator[Image]:
    """One after the other, so that the caller can say what is ready. `ratelimit` is its program."""
    yield envoy()
    yield rate_limit(ratelimit)
    debian = programs.debian()
    yield redis(debian)
    yield nginx(debian)


def envoy() -> Image:
    files = {"/usr/local/bin/envoy": programs.envoy()}
    return Image(ENVOY, cached_image(ENVOY, files, entrypoint=["/usr/local/bin/envoy"]))


def rate_limit(program: Path) -> Image:
    files = {"/bin/ratelimit": program}
    return Image(RATELIMIT, cached_image(RATELIMIT, files, entrypoint=["/bin/ratelimit"]))


def mtls_client(program: Path) -> Image:
    """Software that no catalogue knows."""
    files = {"/usr/bin/mtls-client": program}
    return Image(MTLS_CLIENT, cached_image(MTLS_CLIENT, files, entrypoint=["/usr/bin/mtls-client"]))


def rereading_client(program: Path) -> Image:
    files = {"/usr/bin/rereading-client": program}
    return Image(REREADING_CLIENT, cached_image(REREADING_CLIENT, files, entrypoint=["/usr/bin/rereading-client"]))


def certcheck(program: Path) -> Image:
    files = {"/usr/bin/certcheck": program}
    return Image(CERTCHECK, cached_image(CERTCHECK, files, entrypoint=["/usr/bin/certcheck"]))


def java_client(debian: programs.DebianPrograms) -> Image:
    """Java compiles the client's one file when it starts."""
    homes = debian.root / "usr" / "lib" / "jvm"
    home = next(folder for folder in sorted(homes.iterdir()) if folder.is_dir() and not folder.is_symlink())
    settings = next((debian.root / "etc").glob("java-*-openjdk"))
    source = paths.HACK / "images" / "java-client" / "RereadingClient.java"
    files: dict[str, Path] = {f"/usr/lib/jvm/{home.name}/{part}": home / part for part in ("bin/java", "conf", "lib")}
    files |= {f"/etc/{settings.name}": settings, "/client/RereadingClient.java": source}
    entrypoint = [f"/usr/lib/jvm/{home.name}/bin/java", "-Xmx192m", "-XX:+UseSerialGC", "/client/RereadingClient.java"]
    return Image(JAVA_CLIENT, cached_image(JAVA_CLIENT, files, entrypoint=entrypoint, sysroot=debian.root))


def redis(debian: programs.DebianPrograms) -> Image:
    reference = f"docker.io/library/redis:{debian.versions['redis-server']}"
    files = {"/usr/bin/redis-server": debian.root / "usr/bin/redis-server"}
    return Image(reference, cached_image(reference, files, entrypoint=["/usr/bin/redis-server"], sysroot=debian.root))


def nginx(debian: programs.DebianPrograms) -> Image:
    reference = f"docker.io/library/nginx:{debian.versions['nginx']}"
    files = {"/usr/sbin/nginx": debian.root / "usr/sbin/nginx"}
    # A container ends when its first process does: nginx must stay in the foreground.
    entrypoint = ["/usr/sbin/nginx", "-e", "stderr", "-g", "daemon off;"]
    return Image(reference, cached_image(reference, files, entrypoint=entrypoint, sysroot=debian.root))


def haproxy(debian: programs.DebianPrograms) -> Image:
    reference = f"docker.io/library/haproxy:{debian.versions['haproxy']}"
    files = {"/usr/sbin/haproxy": debian.root / "usr/sbin/haproxy"}
    return Image(reference, cached_image(reference, files, entrypoint=["/usr/sbin/haproxy"], sysroot=debian.root))


def postgresql(debian: programs.DebianPrograms, major: str = "15") -> Image:
    """The server, initdb, which needs a shell, and pg_isready. Without LLVM, which weighs more than all the rest."""
    reference = f"docker.io/library/postgres:{debian.versions[f'postgresql-{major}']}"
    home, share = f"usr/lib/postgresql/{major}", f"usr/share/postgresql/{major}"
    names = ["bin/initdb", "bin/pg_isready", "bin/postgres", "lib/dict_snowball.so", "lib/plpgsql.so"]
    files: dict[str, Path | bytes] = {f"/{home}/{name}": debian.root / home / name for name in names}
    files |= {f"/{share}": debian.root / share, "/usr/bin/sh": Path("/bin/sh")}
    # It looks itself up, so its user must have a name.
    return Image(reference, cached_image(
        reference, files, entrypoint=[f"/{home}/bin/postgres"], user="999:999", sysroot=debian.root,
        env={"PATH": f"/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/{home}/bin"},
    ))  # fmt: skip
