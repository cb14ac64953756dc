"""A real PostgreSQL server for the tests: started once, on a socket in a directory of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from danlu.stores.sql import schema
from tests.services import require

START_S = 60
ACCOUNTS = ("postgres", "nobody")
"""Who may run the server where the tests run as root, which PostgreSQL refuses."""

QUICK = ("fsync=off", "full_page_writes=off", "max_connections=250", "shared_buffers=32MB")


class Server:
    """A running server. Every test takes a schema of its own in its one database."""

    def __init__(self, folder: Path, account: str) -> None:
        self._folder = folder
        self._account = account
        self._schemas = itertools.count(1)
        self._used: str | None = None

    def url(self, name: str = "public") -> str:
        """The address under which the records see the schema `name` and nothing else."""
        options = quote(f"-csearch_path={name}")
        host = quote(str(self._folder), safe="")
        return f"postgresql://{self._account}@/postgres?host={host}&options={options}"

    def empty(self) -> str:
        """The address of a new, empty schema."""
        name = f"test_{next(self._schemas)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return self.url(name)

    def cleared(self) -> str:
        """The address of a schema that holds our tables, of this version, without a row.

        Clearing takes a tenth of the time of making them anew.
        """
        tables = ", ".join(
            table.name for table in schema.metadata.sorted_tables if table is not schema.revision
        )
        if self._used is not None:
            with (
                contextlib.suppress(psycopg.errors.UndefinedTable),
                psycopg.connect(self._used, autocommit=True) as connection,
            ):
                found = connection.execute("SELECT version_num FROM danlu_revision").fetchone()
                if found == (schema.REVISIONS[-1],):
                    connection.execute(f"TRUNCATE {tables}")
                    return self._used
        self._used = self.empty()
        return self._used


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A server that ends with the test run. Skipped at home where PostgreSQL is not installed."""
    programs = _programs()
    require(programs, "PostgreSQL: apt-get install postgresql")
    assert programs is not None
    account = _account()
    # Not pytest's directory: it is closed to the account that runs the server, and a socket's
    # path must be short.
    folder = Path(tempfile.mkdtemp(prefix="danlu-pg-"))
    try:
        with _running(programs, folder, account):
            yield Server(folder, account)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The directory of initdb and postgres: on PATH, or where Debian puts the newest."""
    on_path = shutil.which("initdb")
    if on_path and (Path(on_path).parent / "postgres").exists():
        return Path(on_path).parent
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4])
    )
    return found[-1].parent if found else None


def _account() -> str:
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    names = {entry.pw_name for entry in pwd.getpwall()}
    account = next((name for name in ACCOUNTS if name in names), None)
    require(account, f"an account to run PostgreSQL under (one of {', '.join(ACCOUNTS)})")
    assert account is not None
    return account


@contextlib.contextmanager
def _running(programs: Path, folder: Path, account: str) -> Iterator[None]:
    uid = gid = groups = None
    if os.geteuid() == 0:
        entry = pwd.getpwnam(account)
        uid, gid, groups = entry.pw_uid, entry.pw_gid, [entry.pw_gid]
        os.chown(folder, uid, gid)
    data = str(folder / "data")
    made = ["-D", data, "-U", account, "-E", "UTF8", "--locale=C", "-A", "trust", "-N"]
    subprocess.run(
        [str(programs / "initdb"), *made],
        check=True,
        capture_output=True,
        cwd=folder,
        user=uid,
        group=gid,
        extra_groups=groups,
    )
    settings = [f"-c{one}" for one in (*QUICK, "listen_addresses=", "log_min_messages=fatal")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(programs / "postgres"), "-D", data, "-k", str(folder), *settings],
            stdout=log,
            stderr=log,
            cwd=folder,
            user=uid,
            group=gid,
            extra_groups=groups,
        )
    try:
        _wait(server, folder, account)
        yield
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: what it holds is thrown away anyway
        try:
            server.wait(START_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait(server: subprocess.Popen[bytes], folder: Path, account: str) -> None:
    give_up = time.monotonic() + START_S
    while time.monotonic() < give_up:
        if server.poll() is not None:
            break
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(host=str(folder), user=account, dbname="postgres").close()
            return
        time.sleep(0.02)
    said = (folder / "log").read_text(errors="replace")
    pytest.fail(f"PostgreSQL did not start:\n{said}", pytrace=False)
