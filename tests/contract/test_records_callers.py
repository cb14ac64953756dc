"""What Records promise of callers: users, keys, tokens, settings, and signatures seen once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from danlu.model.attempt import Event
from danlu.model.errors import Invalid, Refused
from danlu.model.identity import AccessKey, Secret, User, Workspace
from danlu.model.ssh_key import SshKey
from danlu.model.storage import access_key_of
from danlu.ports.records import JobQuery, Move, Records
from danlu.stores.sql import writer
from danlu.stores.sql.opening import open_database
from danlu.stores.sql.records import SqlRecords
from danlu.stores.sql.signatures import Signatures
from tests.contract.samples import OTHER, USER, WAIT, WORKSPACE, Store, submission, submitted

UNKNOWN = ["", "x", "' OR 1=1 --", "a\0b", "\ud800", "%"]
CANARY = "canary-of-the-secret-key-7f3a9c"


@pytest.fixture
def people(records: Records) -> Records:
    """A workspace with one user."""
    assert records.add_workspace(WORKSPACE).result(WAIT)
    assert records.add_user(USER).result(WAIT)
    return records


def test_workspaces(records: Records) -> None:
    assert records.workspaces() == []
    other = Workspace("空间", "cn-1")
    assert records.add_workspace(WORKSPACE).result(WAIT)
    assert records.add_workspace(other).result(WAIT)
    assert not records.add_workspace(Workspace(WORKSPACE.id, "elsewhere")).result(WAIT)

    assert records.workspace(WORKSPACE.id) == WORKSPACE
    assert sorted(records.workspaces(), key=lambda one: one.id) == [WORKSPACE, other]
    assert [records.workspace(one) for one in UNKNOWN] == [None] * len(UNKNOWN)


def test_users(people: Records) -> None:
    assert people.user("alice") == USER
    assert [people.user(one) for one in (*UNKNOWN, "Alice", "u1")] == [None] * (len(UNKNOWN) + 2)

    assert not people.add_user(replace(USER, id="u2")).result(WAIT), "the name is taken"
    assert not people.add_user(replace(USER, name="bob")).result(WAIT), "the id is taken"
    assert people.add_user(User("u2", "鲍勃", "ws", "d1")).result(WAIT)
    assert people.user("alice") == USER
    assert people.user("鲍勃") == User("u2", "鲍勃", "ws", "d1", "")


def test_a_user_lives_in_a_workspace_that_exists(records: Records) -> None:
    with pytest.raises(Refused) as refused:
        records.add_user(USER).result(WAIT)

    assert refused.value.key == "record-conflict"
    assert records.user("alice") is None


@pytest.mark.parametrize("text", ["a\0b", "\udcff"])
def test_names_that_no_column_can_hold_are_refused(people: Records, text: str) -> None:
    for user in (replace(USER, id=text), replace(USER, id="2", name=text)):
        with pytest.raises(Invalid):
            people.add_user(user).result(WAIT)
    with pytest.raises(Invalid):
        people.add_workspace(Workspace(text, "r")).result(WAIT)
    with pytest.raises(Invalid):
        people.set_setting("k", text).result(WAIT)
    with pytest.raises(Invalid):
        people.add_access_key(AccessKey(text, Secret("s"), USER)).result(WAIT)
    with pytest.raises(Invalid):
        people.add_token(text, USER.id, 1).result(WAIT)


def test_access_keys(people: Records) -> None:
    for name, secret in (("AK2", "two"), ("AK1", "秘密\0\n")):
        assert people.add_access_key(AccessKey(name, Secret(secret), USER)).result(WAIT)
    assert not people.add_access_key(AccessKey("AK1", Secret("other"), USER)).result(WAIT)

    found = people.access_key("AK1")

    assert found is not None
    assert (found.access_key, found.secret.reveal(), found.user) == ("AK1", "秘密\0\n", USER)
    assert people.access_keys(USER.id) == ["AK1", "AK2"]
    assert people.access_keys("nobody") == people.access_keys("a\0") == []
    assert [people.access_key(one) for one in (*UNKNOWN, "ak1")] == [None] * (len(UNKNOWN) + 1)


def test_an_attempt_has_a_key_while_it_lives(people: Records) -> None:
    [first] = submitted(people, submission())
    [other] = submitted(people, submission())
    name = access_key_of(first.job_id, 1)

    found = people.access_key(name)

    assert found is not None
    assert (found.access_key, found.user, found.job) == (name, USER, first.job_id)
    again, others = people.access_key(name), people.access_key(access_key_of(other.job_id, 1))
    assert again is not None
    assert others is not None
    secret = found.secret.reveal()
    assert secret == again.secret.reveal() != others.secret.reveal()
    assert len(secret) == 43
    assert people.access_keys(USER.id) == []
    assert people.access_key(access_key_of(first.job_id, 2)) is None
    assert people.access_key(access_key_of("no-such-job", 1)) is None

    people.move(Move(first, Event.STOP, 5)).result(WAIT)

    assert people.access_key(name) is None


def test_the_key_of_an_attempt_is_nobodys_without_its_user(people: Records) -> None:
    for user, workspace in (("nobody", WORKSPACE.id), (USER.name, OTHER.id)):
        [key] = submitted(people, submission(user=user, workspace=workspace))

        assert people.access_key(access_key_of(key.job_id, 1)) is None


def test_a_secret_is_nowhere_in_clear(store: Store) -> None:
    """(threat O) A copy of the database gives no secret away, nor does its log."""
    records = store.open()
    records.add_workspace(WORKSPACE).result(WAIT)
    records.add_user(USER).result(WAIT)
    records.add_access_key(AccessKey("AK", Secret(CANARY), USER)).result(WAIT)

    if store.is_sqlite:
        files = list(store.key_file.parent.glob("records.db*"))
        assert any(file.name.endswith("-wal") for file in files)
        kept = b"".join(file.read_bytes() for file in files)
    else:
        database = open_database(store.where)
        connection = database.connect(writing=False)
        rows = connection.execute("SELECT access_keys::text, secret FROM access_keys").fetchall()
        connection.close()
        kept = b"".join(str(text).encode() + bytes(secret) for text, secret in rows)

    assert b"AK" in kept
    assert CANARY.encode() not in kept
    assert CANARY.encode().hex().encode() not in kept
    assert CANARY.encode() not in store.key_file.read_bytes()


def test_tokens(people: Records) -> None:
    assert people.add_token("d1", USER.id, 100).result(WAIT)
    assert not people.add_token("d1", USER.id, 999).result(WAIT)

    assert people.token_user("d1", 99) == USER
    assert people.token_user("d1", 100) is None
    assert [people.token_user(one, 0) for one in UNKNOWN] == [None] * len(UNKNOWN)
    with pytest.raises(Refused):
        people.add_token("d2", "nobody", 1).result(WAIT)
    with pytest.raises(Invalid):
        people.add_token("d3", USER.id, 2**63).result(WAIT)


def test_settings_are_replaced(records: Records) -> None:
    assert records.setting("project") is None
    assert records.set_setting("project", "a").result(WAIT)
    assert records.set_setting("project", "b 'x'").result(WAIT)

    assert records.setting("project") == "b 'x'"
    assert [records.setting(one) for one in UNKNOWN] == [None] * len(UNKNOWN)


# ---------------------------------------------------------------- signatures


def test_a_signature_is_used_once(records: Records) -> None:
    assert records.first_use("s1", now=10, expires_at=100)
    assert not records.first_use("s1", now=11, expires_at=100)
    assert not records.first_use("s1", now=99, expires_at=500)
    assert records.first_use("s2", now=11, expires_at=100)
    assert records.first_use("\ud800\0 odd", now=11, expires_at=100)
    assert not records.first_use("\ud800\0 odd", now=11, expires_at=100)
    assert records.first_use("s1", now=100, expires_at=200), "it has expired"


def test_signatures_are_remembered_over_a_restart(store: Store) -> None:
    records = store.open()
    now = store.clock.now()
    for number in range(300):
        assert records.first_use(f"s{number}", now, now + 1000)
    assert records.first_use("short", now, now + 1)
    store.close()
    store.clock.advance(0.5)

    again = store.open()

    later = store.clock.now()
    assert not any(again.first_use(f"s{number}", later, now + 1000) for number in range(300))
    assert again.first_use("short", later, later + 1)


def test_a_signature_is_on_disk_before_what_it_allowed(store: Store) -> None:
    """After a crash right behind the write, a replay is still known."""
    records = store.open()
    now = store.clock.now()
    assert records.first_use("sig", now, now + 1000)
    records.submit(submission()).result(WAIT)

    beside = store.open()  # what a restart would find, with nothing closed

    assert beside.jobs(WORKSPACE.id, JobQuery()).total == 1
    assert not beside.first_use("sig", now, now + 1000)


def test_a_signature_alone_reaches_the_disk_as_well(store: Store) -> None:
    records = store.open()
    now = store.clock.now()
    assert records.first_use("alone", now, now + 1000)
    database = open_database(store.where)
    connection = database.connect(writing=False)
    for _ in range(600):
        if connection.execute("SELECT digest FROM signatures").fetchall():
            break
        time.sleep(0.05)
    connection.close()

    assert not store.open().first_use("alone", now, now + 1000)


def test_memory_for_signatures_is_bounded_and_nothing_is_forgotten(store: Store) -> None:
    records = store.open()
    assert isinstance(records, SqlRecords)
    now = store.clock.now()
    small = Signatures(records._reads, records._writer, now, most=50)
    for number in range(500):
        assert small.first_use(f"s{number}", now, now + 1000 + number)
        assert len(small._expires) <= 50
    records.submit(submission()).result(WAIT)  # all before it is on disk

    assert not any(small.first_use(f"s{number}", now, now + 1000 + number) for number in range(500))
    later = now + 10_000
    assert all(small.first_use(f"s{number}", later, later + 10) for number in range(100))


def test_what_has_expired_is_removed_now_and_then(store: Store) -> None:
    records = store.open()
    records.add_workspace(WORKSPACE).result(WAIT)
    records.add_user(USER).result(WAIT)
    now = store.clock.now()
    records.add_token("old", USER.id, now + 1).result(WAIT)
    records.add_token("new", USER.id, now + 10**9).result(WAIT)
    records.first_use("old", now, now + 1)
    records.first_use("new", now, now + 10**9)
    store.clock.advance(writer.CHORE_S + 1)
    records.submit(submission()).result(WAIT)
    records.close()

    database = open_database(store.where)
    connection = database.connect(writing=False)
    tokens = connection.execute("SELECT digest FROM tokens").fetchall()
    seen = connection.execute("SELECT count(*) FROM signatures").fetchall()
    connection.close()
    assert tokens == [("new",)]
    assert seen == [(1,)]


def test_a_public_key_says_who_somebody_is(people: Records) -> None:
    bob = User("u2", "bob", WORKSPACE.id, "d1")
    assert people.add_user(bob).result(WAIT)
    laptop = SshKey("laptop", USER.id, "ssh-ed25519 AAAA", "SHA256:1", 5)
    desk = SshKey("desk", USER.id, "ssh-ed25519 BBBB", "SHA256:2", 3)
    assert people.add_ssh_key(laptop).result(WAIT)
    assert people.add_ssh_key(desk).result(WAIT)
    assert not people.add_ssh_key(replace(laptop, user_id="u2")).result(WAIT), "it is alice's"
    assert not people.add_ssh_key(replace(laptop, fingerprint="SHA256:3")).result(WAIT), "a name"
    assert people.add_ssh_key(replace(laptop, user_id="u2", fingerprint="SHA256:4")).result(WAIT)

    assert people.ssh_keys(USER.id) == [desk, laptop]
    assert people.ssh_user("SHA256:1") == USER
    assert people.ssh_user("SHA256:4") == bob
    assert [people.ssh_user(one) for one in UNKNOWN] == [None] * len(UNKNOWN)
    assert [people.ssh_keys(one) for one in UNKNOWN] == [[]] * len(UNKNOWN)

    assert people.remove_ssh_key(USER.id, "laptop").result(WAIT)
    assert not people.remove_ssh_key(USER.id, "laptop").result(WAIT)
    assert people.ssh_user("SHA256:1") is None
    assert people.ssh_user("SHA256:4") == bob
