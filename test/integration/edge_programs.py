"""HAProxy and nginx of the distribution as processes, as root, with everything they can have connections by."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edge_clients import PATIENCE_S, Address
from sidecar_pod import wait_for

from certroll_dev import commands
from certroll_dev.demo import programs as sources

HTTP, TCP, HTTP6, STATS, HTTP2 = 10080, 10081, 10082, 10083, 10084
UPSTREAM_HTTP, UPSTREAM_TCP = 10090, 10091

_HAPROXY = """
global
  stats socket {folder}/admin.sock mode 600 level {level}
defaults
  mode http
  timeout connect 3s
  timeout client 60s
  timeout server 60s
  timeout http-keep-alive {keep_alive}
frontend web
  bind 127.0.0.1:{HTTP}
  bind {folder}/web.sock
  default_backend app
frontend web6
  bind [::1]:{HTTP6}
  default_backend app
listen plain
  bind 127.0.0.1:{TCP}
  mode tcp
  server s 127.0.0.1:{UPSTREAM_TCP}
frontend stats
  bind 127.0.0.1:{STATS}
  stats enable
  stats uri /
backend app
  server s 127.0.0.1:{UPSTREAM_HTTP}
"""

_NGINX = """
load_module {modules}/ngx_stream_module.so;
user nobody nogroup;
worker_processes 2;
{main}
pid {folder}/nginx.pid;
error_log stderr notice;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4;
  scgi_temp_path {folder}/t5;
  keepalive_timeout 60s;
  upstream app {{ server 127.0.0.1:{UPSTREAM_HTTP}; keepalive 8; }}
  server {{
    listen 127.0.0.1:{HTTP}; listen [::1]:{HTTP6}; listen unix:{folder}/web.sock; listen 127.0.0.1:{HTTP2} http2;
    location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }}
  }}
}}
stream {{ server {{ listen {TCP}; proxy_pass 127.0.0.1:{UPSTREAM_TCP}; }} }}
"""


@dataclass
class _Program:
    options: Sequence[str] = ()
    prefix: Sequence[str] = ()  # runs it elsewhere, or with fewer rights
    folder: Path = field(init=False)
    process: subprocess.Popen[bytes] = field(init=False)

    def addresses(self) -> list[Address]:
        """For HTTP/1."""
        return [("127.0.0.1", HTTP), ("::1", HTTP6), str(self.folder / "web.sock")]

    @contextlib.contextmanager
    def _running(self, folder: Path, words: Sequence[str], root: Path) -> Iterator[None]:
        self.folder = folder
        log = folder / "log"
        libraries = {"LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu")}
        with log.open("wb") as out:
            self.process = subprocess.Popen([*self.prefix, *words], stdout=out, stderr=out, env={**os.environ, **libraries})
        try:
            wait_for("it listens", lambda: self._listens(log))
            yield
        finally:
            commands.end(self.process, PATIENCE_S)
            print(log.read_text()[-3000:])

    def _listens(self, log: Path) -> bool:
        assert self.process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", TCP), timeout=1).close()
        except OSError:
            return False
        return True


@dataclass
class HAProxy(_Program):
    level: str = "admin"
    keep_alive: str = "60s"

    @property
    def flags(self) -> list[str]:
        return ["--proxy", "haproxy", "--admin-address", str(self.folder / "admin.sock")]

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[HAProxy]:
        root = sources.debian(sources.EDGE).root
        config = folder / "haproxy.cfg"
        config.write_text(_HAPROXY.format(folder=folder, level=self.level, keep_alive=self.keep_alive, **globals()))
        words = [str(root / "usr/sbin/haproxy"), *self.options, "-db", "-f", str(config)]
        with self._running(folder, words, root):
            yield self

    def ask(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as admin:
            admin.settimeout(PATIENCE_S)
            admin.connect(str(self.folder / "admin.sock"))
            admin.sendall(f"{command}\n".encode())
            answer = b""
            while piece := admin.recv(65536):
                answer += piece
            return answer.decode()

    def column(self, name: str) -> dict[str, str]:
        """Of "show stat", by frontend."""
        head, *rows = self.ask("show stat -1 1 -1").strip().splitlines()
        at = head.removeprefix("# ").split(",").index(name)
        return {row.split(",")[0]: row.split(",")[at] for row in rows}


@dataclass
class Nginx(_Program):
    main: str = ""  # directives of the main context

    @property
    def flags(self) -> list[str]:
        return ["--proxy", "nginx", "--pid-file", str(self.folder / "nginx.pid")]

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[Nginx]:
        root = sources.debian(sources.EDGE).root
        config = folder / "nginx.conf"
        for file in ("usr/sbin/nginx", "usr/lib/nginx/modules/ngx_stream_module.so"):
            shutil.copy(root / file, folder)  # nobody may look into the cache
        config.write_text(_NGINX.format(folder=folder, modules=folder, main=self.main, **globals()))
        words = [str(folder / "nginx"), *self.options, "-e", "stderr", "-c", str(config), "-g", "daemon off;"]
        with self._running(folder, words, root):
            yield self
