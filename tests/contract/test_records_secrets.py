"""The key file of the records' secrets: made once, kept private, and the only one that fits."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.model.errors import PlatformError, Refused
from danlu.model.identity import AccessKey, Secret
from danlu.stores.sql.opening import open_database
from danlu.stores.sql.secrets import KEY_BYTES, KeyFile
from tests.contract.samples import USER, WAIT, WORKSPACE, Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.key"


def test_a_secret_comes_back_for_its_owner_only(path: Path) -> None:
    sealed = KeyFile(path).seal(Secret("秘密"), "AK1")

    assert KeyFile(path).open(sealed, "AK1").reveal() == "秘密"
    with pytest.raises(Refused) as refused:
        KeyFile(path).open(sealed, "AK2")
    assert refused.value.key == "key-file-wrong"


def test_the_same_secret_never_looks_the_same(path: Path) -> None:
    keys = KeyFile(path)

    assert len({keys.seal(Secret("s"), "AK") for _ in range(50)}) == 50


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_changed_byte_is_noticed(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    keys = KeyFile(tmp_path_factory.getbasetemp() / "one.key")
    sealed = bytearray(keys.seal(Secret("secret"), "AK"))
    at = data.draw(st.integers(0, len(sealed) - 1))
    sealed[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(Refused):
        keys.open(bytes(sealed), "AK")


@pytest.mark.parametrize("length", [0, 1, 5, 12, 13, 20])
def test_a_cut_secret_is_refused(path: Path, length: int) -> None:
    keys = KeyFile(path)
    sealed = keys.seal(Secret("secret"), "AK")

    with pytest.raises(Refused):
        keys.open(sealed[:length], "AK")


def test_the_file_is_private_and_left_behind_whole(path: Path) -> None:
    KeyFile(path).seal(Secret("s"), "AK")

    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_bytes()) == KEY_BYTES
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_file_that_others_can_read_is_refused(path: Path, mode: int) -> None:
    KeyFile(path).seal(Secret("s"), "AK")
    path.chmod(mode)

    with pytest.raises(Refused) as refused:
        KeyFile(path).seal(Secret("s"), "AK")

    assert refused.value.key == "key-file-open"
    assert "chmod 600" in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"short", bytes(KEY_BYTES + 1)])
def test_a_file_that_is_no_key_is_refused(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)

    with pytest.raises(Refused) as refused:
        KeyFile(path).seal(Secret("s"), "AK")

    assert refused.value.key == "key-file-unreadable"
    assert path.read_bytes() == content


def test_many_that_need_it_first_make_one_key(path: Path) -> None:
    start = threading.Barrier(12)
    sealed: list[bytes] = []

    def seal() -> None:
        keys = KeyFile(path)
        start.wait(60)
        sealed.append(keys.seal(Secret("s"), "AK"))

    threads = [threading.Thread(target=seal) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert [KeyFile(path).open(one, "AK").reveal() for one in sealed] == ["s"] * 12


def test_a_lost_key_is_told_and_not_made_anew(store: Store) -> None:
    """A new key would hide that every secret is lost."""
    records = store.open()
    records.add_workspace(WORKSPACE).result(WAIT)
    records.add_user(USER).result(WAIT)
    assert not store.key_file.exists(), "it is made when it is first needed"
    records.add_access_key(AccessKey("AK", Secret("s"), USER)).result(WAIT)
    store.close()
    store.key_file.unlink()

    again = store.open()

    for use in (
        lambda: again.access_key("AK"),
        lambda: again.add_access_key(AccessKey("AK2", Secret("s"), USER)),
    ):
        with pytest.raises(PlatformError) as lost:
            use()
        assert lost.value.key == "key-file-unreadable"
    assert not store.key_file.exists()


def test_a_row_moved_to_another_key_pair_gives_nothing(store: Store) -> None:
    """Whoever can write to the database cannot make one user's secret another's."""
    records = store.open()
    records.add_workspace(WORKSPACE).result(WAIT)
    records.add_user(USER).result(WAIT)
    for name in ("AK1", "AK2"):
        records.add_access_key(AccessKey(name, Secret(name * 3), USER)).result(WAIT)
    database = open_database(store.where)
    connection = database.connect(writing=True)
    connection.execute(
        "UPDATE access_keys SET secret ="
        " (SELECT secret FROM access_keys WHERE access_key = 'AK2') WHERE access_key = 'AK1'"
    )
    connection.close()

    with pytest.raises(Refused) as refused:
        records.access_key("AK1")
    assert refused.value.key == "key-file-wrong"
    assert os.fspath(store.key_file) in str(refused.value)
