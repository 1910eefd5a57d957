"""nginx, Apache, HAProxy: from Debian's packages."""

from __future__ import annotations

import socket
from pathlib import Path

from certroll_dev.demo.programs import DebianPrograms
from programs.handshake import HTTP_REQUEST, Server, exchange
from programs.program import CALLS, CONFIG, SERVES, Program
from programs.sandbox import Sandbox

_NGINX = """
pid /tmp/nginx.pid;
error_log stderr warn;
events {{}}
http {{
  access_log off;
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_certificate /certs/tls.crt;
    ssl_certificate_key /certs/tls.key;
    ssl_client_certificate /certs/ca.crt;
    ssl_verify_client on;
    location / {{ return 200 "ok"; }}
  }}
  server {{
    listen 127.0.0.1:{plain};
    location / {{
      proxy_pass https://127.0.0.1:{peer};
      proxy_ssl_certificate /certs/tls.crt;
      proxy_ssl_certificate_key /certs/tls.key;
      proxy_ssl_trusted_certificate /certs/ca.crt;
      proxy_ssl_verify on;
      proxy_ssl_name peer;
      proxy_ssl_session_reuse off;
    }}
  }}
}}
"""


def nginx(debian: DebianPrograms, port: int, name: str = "nginx") -> Program:
    """It answers 400 to a client whose certificate it does not accept."""
    plain, peer = port + 1, port + 2
    return Program(
        name=name,
        image=f"docker.io/library/nginx:{debian.versions['nginx']}",
        command=["nginx", "-e", "stderr", "-c", f"{CONFIG}/nginx.conf", "-g", "daemon off;"],
        config={"nginx.conf": _NGINX.format(port=port, plain=plain, peer=peer)},
        usr=debian.root / "usr",
        server=Server(port, accepted=lambda answer: b" 200 " in answer),
        roles=SERVES | CALLS,
        peer_port=peer,
        provoke=lambda: exchange(plain, HTTP_REQUEST),
    )


_APACHE = """
ServerName program
PidFile /tmp/apache.pid
DefaultRuntimeDir /tmp
ErrorLog /dev/stderr
{modules}
Listen 127.0.0.1:{port}
DocumentRoot /var/lib/data
SSLEngine on
SSLCertificateFile /certs/tls.crt
SSLCertificateKeyFile /certs/tls.key
SSLCACertificateFile /certs/ca.crt
SSLVerifyClient require
"""


def apache(debian: DebianPrograms, port: int) -> Program:
    modules = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in ("mpm_event", "authz_core", "ssl"))
    return Program(
        name="apache",
        image=f"docker.io/library/httpd:{debian.versions['apache2-bin']}",
        command=["apache2", "-D", "FOREGROUND", "-f", f"{CONFIG}/httpd.conf"],
        config={"httpd.conf": _APACHE.format(port=port, modules=modules)},
        usr=debian.root / "usr",
        server=Server(port),
        roles=SERVES,
    )


_HAPROXY = """
global
  stats socket /tmp/haproxy.sock mode 600 level admin
  ssl-load-extra-del-ext
defaults
  mode http
  timeout connect 3s
  timeout client 5s
  timeout server 5s
  retries 0
frontend tls
  bind 127.0.0.1:{port} ssl crt /certs/tls.crt ca-file /certs/ca.crt verify required
  http-request return status 200 content-type text/plain string ok
frontend plain
  bind 127.0.0.1:{plain}
  default_backend peer
backend peer
  http-reuse never
  server peer 127.0.0.1:{peer} ssl verify required verifyhost peer ca-file /certs/ca.crt crt /certs/tls.crt no-ssl-reuse no-tls-tickets
"""


def haproxy(debian: DebianPrograms, port: int) -> Program:
    plain, peer = port + 1, port + 2
    return Program(
        name="haproxy",
        image=f"docker.io/library/haproxy:{debian.versions['haproxy']}",
        command=["haproxy", "-W", "-db", "-f", f"{CONFIG}/haproxy.cfg"],
        config={"haproxy.cfg": _HAPROXY.format(port=port, plain=plain, peer=peer)},
        usr=debian.root / "usr",
        server=Server(port),
        roles=SERVES | CALLS,
        peer_port=peer,
        provoke=lambda: exchange(plain, HTTP_REQUEST),
        commands=_runtime_api,
    )


def _runtime_api(sandbox: Sandbox, trigger: str) -> None:
    """The commands that `trigger` names ("set ssl cert, commit ssl cert"), for the file that they are about."""
    if "ssl cert" in trigger:
        file, content = "/certs/tls.crt", sandbox.read("/certs/tls.crt") + sandbox.read("/certs/tls.key")
    elif "ssl ca-file" in trigger:
        file, content = "/certs/ca.crt", sandbox.read("/certs/ca.crt")
    else:
        raise AssertionError(f"HAProxy's runtime API has no {trigger!r}")
    what = "cert" if "ssl cert" in trigger else "ca-file"
    pem = b"\n".join(line for line in content.splitlines() if line)
    path = sandbox.root / "tmp" / "haproxy.sock"
    commands = {f"set ssl {what} {file} <<\n".encode() + pem + b"\n\n": b"ransaction", f"commit ssl {what} {file}\n".encode(): b"Success"}
    for command, expected in commands.items():
        answer = _ask(path, command)
        if expected not in answer:
            raise AssertionError(f"HAProxy refused {command[:40]!r}: {answer!r}")


def _ask(path: Path, command: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as admin:
        admin.settimeout(5)
        admin.connect(str(path))
        admin.sendall(command)
        answer = b""
        while piece := admin.recv(4096):
            answer += piece
        return answer
