"""The client's side of a code directory: what is taken, and that the server agrees."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from danlu.faces.cli import code, ignore
from danlu.faces.cli.code import CodeTree, scan
from danlu.flow.code import store_archive
from danlu.model.code import CodeLimits, printable
from danlu.model.errors import Invalid
from danlu.stores.folder import FolderStore

BUCKET = "danlu"


def write(root: Path, *paths: str, content: bytes = b"x") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def paths(tree: CodeTree) -> list[str]:
    return [file.path for file in tree.files]


def packed(tree: CodeTree) -> bytes:
    target = io.BytesIO()
    tree.write_tar(target)
    return target.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "my code"
    made.mkdir()
    return made


def test_hidden_files_go_and_the_usual_rest_stays(root: Path) -> None:
    """(case 100)"""
    write(
        root,
        *("train.py", ".env", ".config/x", "src/a.py", "env/x", "a.pyc.txt"),
        *(".git/HEAD", "sub/.git", "sub/__pycache__/a.cpython-311.pyc", "a.pyc"),
        *(".venv/bin/python", "venv/x", "web/node_modules/y/z", ".danlu/x"),
        *("nb/.ipynb_checkpoints/x.ipynb",),
    )
    tree = scan(root)
    assert paths(tree) == [".config/x", ".env", "a.pyc.txt", "env/x", "src/a.py", "train.py"]
    assert tree.name == "my code"
    assert tree.size == 6


def test_the_ignore_file_decides_last(root: Path) -> None:
    write(root, "data/big.bin", "data/keep.txt", "venv/pyvenv.cfg", "a.log", "b/a.log", "b/c.log")
    write(
        root,
        ".danluignore",
        content=b"# comment\n/data/*\n!/data/keep.txt\n!venv\n*.log\n!c.log\n",
    )
    assert paths(scan(root)) == [".danluignore", "b/c.log", "data/keep.txt", "venv/pyvenv.cfg"]


def test_a_servers_data_directory_is_no_code(root: Path) -> None:
    """A script in somebody's home directory has it below itself, with its key and its sockets."""
    write(root, "train.py", "share/danlu/server.lock", "share/danlu/secret.key", "share/a.py")
    (root / "share/danlu/engine").mkdir()
    os.mkfifo(root / "share/danlu/engine/wake")
    assert paths(scan(root)) == ["share/a.py", "train.py"]


def test_credentials_are_pointed_out(root: Path) -> None:
    write(root, ".env", ".env.local", "deep/id_rsa", "id_rsa.pub", "server.key", "keys.py")
    write(root, "credentials.csv", "my-credentials.json", "environment.py", ".ENV")
    assert scan(root).credentials == [
        ".ENV",
        ".env",
        ".env.local",
        "credentials.csv",
        "deep/id_rsa",
        "my-credentials.json",
        "server.key",
    ]


def test_links_to_files_of_the_tree_are_sent_as_files(root: Path) -> None:
    write(root, "real/file", content=b"content")
    (root / "real" / "file").chmod(0o755)
    (root / "a").symlink_to("real/file")
    (root / "b").symlink_to("a")
    (root / "absolute").symlink_to(root / "real" / "file")
    tree = scan(root)
    assert paths(tree) == ["a", "absolute", "b", "real/file"]
    assert all(file.executable for file in tree.files)
    assert tree.size == 28


@pytest.mark.parametrize(
    "target", ["../outside", "/etc/passwd", "nothing", "link", "dir", ".", "venv/x"]
)
def test_any_other_link_is_refused_by_name(root: Path, target: str) -> None:
    write(root, "dir/file", "../outside", "venv/x")
    (root / "link").symlink_to(target)
    with pytest.raises(Invalid) as refused:
        scan(root)
    assert refused.value.key == "code-link"
    assert "'link'" in refused.value.message()
    assert target in refused.value.message()


def test_links_out_of_the_tree_are_not_followed_even_to_look(root: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/file")
    (root / "venv").symlink_to(tmp_path / "outside")
    write(root, "train.py")
    assert paths(scan(root)) == ["train.py"]


def test_special_files_are_refused_by_name(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(Invalid) as refused:
        scan(root)
    assert refused.value.params == {"path": "pipe", "kind": "a named pipe"}
    (root / "pipe").unlink()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.path.relpath(root / "s"))
    with pytest.raises(Invalid) as refused:
        scan(root)
    assert refused.value.params == {"path": "s", "kind": "a socket"}
    listening.close()
    write(root, ".danluignore", content=b"s\n")
    assert paths(scan(root)) == [".danluignore"]


def test_a_name_that_is_not_utf8_is_refused_clearly(root: Path) -> None:
    write(root, "ok", os.fsdecode(b"bad\xff"))
    with pytest.raises(Invalid) as refused:
        scan(root)
    assert refused.value.key == "code-path-encoding"
    assert r"bad\xff" in refused.value.message()
    assert refused.value.message().encode()


@pytest.mark.parametrize("what", ["nothing", "file"])
def test_what_is_not_a_directory_is_refused(root: Path, what: str) -> None:
    write(root, "file")
    with pytest.raises(Invalid) as refused:
        scan(root / what)
    assert refused.value.key == "code-not-directory"


def test_a_directory_that_may_not_be_read_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "closed/file")
    real = os.scandir

    def scandir(path: str) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(Invalid) as refused:
        scan(root)
    assert refused.value.params == {"path": "closed", "detail": "Permission denied"}


# ---------------------------------------------------------------------- limits


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test if the content of a file is looked at."""

    def never(*_: object) -> None:
        raise AssertionError("content was read")

    monkeypatch.setattr(code, "_content", never)


@pytest.mark.usefixtures("unread")
def test_too_many_files_are_refused_before_any_is_read(root: Path) -> None:
    """(cases 99, 100)"""
    write(root, *(f"d{number % 5}/f{number}" for number in range(40)))
    (root / "link").symlink_to("d0/f0")
    with pytest.raises(Invalid) as refused:
        scan(root, CodeLimits(files=40))
    assert refused.value.key == "code-too-many-files"
    assert refused.value.params == {"count": 41, "limit": 40}
    assert len(scan(root, CodeLimits(files=41)).files) == 41


@pytest.mark.usefixtures("unread")
def test_too_many_bytes_are_refused_before_any_is_read(root: Path) -> None:
    """128 MiB and one byte, of which none takes disk. (cases 98, 99)"""
    write(root, "train.py", content=b"x")
    with (root / "model.bin").open("wb") as sparse:
        sparse.truncate(128 << 20)
    with pytest.raises(Invalid) as refused:
        scan(root)
    assert refused.value.key == "code-too-large"
    assert refused.value.params == {"size": 134_217_729, "limit": 134_217_728}
    assert ".danluignore" in refused.value.message()
    write(root, ".danluignore", content=b"*.bin\n")
    assert scan(root).size == 7


def test_somebodys_home_directory_is_given_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """(case 100)"""
    write(root, *(f"f{number}" for number in range(60)))
    monkeypatch.setattr(code, "MOST_FILES", 50)
    with pytest.raises(Invalid) as refused:
        scan(root, CodeLimits(files=30))
    assert refused.value.params == {"count": "more than 50", "limit": 30}


def test_a_large_directory_is_told_before_a_bad_file(root: Path) -> None:
    write(root, *(f"f{number}" for number in range(5)))
    os.mkfifo(root / "pipe")
    with pytest.raises(Invalid) as refused:
        scan(root, CodeLimits(files=4))
    assert refused.value.key == "code-too-many-files"


# ---------------------------------------------------------------------- agreement


def test_the_archive_does_not_depend_on_time_or_order(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / root.name
    write(root, "b", "a/b", "a.b", "é")
    write(other, "é", "a.b", "a/b", "b")
    os.utime(other / "b", (1, 1))
    assert packed(scan(root)) == packed(scan(other))
    assert scan(root).digest() == scan(other).digest()
    (other / "b").chmod(0o755)
    assert scan(root).digest() != scan(other).digest()
    assert packed(scan(root)) != packed(scan(other))


@pytest.mark.parametrize("change", [b"longer than before", b"", b"y"])
@pytest.mark.parametrize("known", [True, False])
def test_a_file_that_changes_meanwhile_is_refused(
    root: Path, change: bytes, *, known: bool
) -> None:
    write(root, "a", "b", content=b"x")
    tree = scan(root)
    if known:
        tree.digest()
    write(root, "b", content=change)
    if not known and change == b"y":
        packed(tree)  # the same size, and nobody has looked inside before
        return
    with pytest.raises(Invalid) as refused:
        packed(tree)
    assert refused.value.key == "code-changed"
    assert refused.value.params == {"path": "b"}


def test_a_file_that_is_gone_or_became_a_link_is_refused(root: Path) -> None:
    write(root, "a", "b", content=b"x")
    tree = scan(root)
    (root / "b").unlink()
    with pytest.raises(Invalid) as refused:
        tree.digest()
    assert refused.value.key == "code-changed"
    (root / "b").symlink_to("/etc/hostname")
    with pytest.raises(Invalid) as refused:
        packed(tree)
    assert refused.value.params["path"] == "b"


part = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12
).filter(lambda name: name not in {".", ".."})
odd = st.sampled_from(
    [
        "a b",
        "丹炉",
        "🔥",
        "a\nb",
        "-rf",
        "--",
        " ",
        "\t",
        "e\u0301",
        "é",
        "$HOME",
        "`id`",
        "\\",
        "'",
    ]
)
trees = st.dictionaries(
    st.lists(
        # What the built-in rules leave out is another test's.
        st.one_of(part, odd).filter(lambda name: not name.endswith((".pyc", *ignore.BUILT_IN))),
        min_size=1,
        max_size=4,
    ).map("/".join),
    st.tuples(st.binary(max_size=700), st.booleans()),
    min_size=1,
    max_size=8,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(files=trees)
@example(files={"n" * 255: (b"", False), "/".join(["d" * 20] * 31): (b"x" * 512, True)})
def test_any_tree_arrives_as_it_is_and_has_one_digest(
    tmp_path: Path, files: dict[str, tuple[bytes, bool]]
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as place:
        root = Path(place) / "tree"
        root.mkdir()
        made: dict[str, tuple[bytes, bool]] = {}
        for path, (content, executable) in files.items():
            try:
                write(root, path, content=content)
            except OSError:
                continue  # a file where a directory would have to be, or a name that is too long
            (root / path).chmod(0o755 if executable else 0o644)
            made[path] = (content, executable)
        store = FolderStore(Path(place) / "objects")
        store.create_bucket(BUCKET)
        tree = scan(root)
        taken = store_archive(store, BUCKET, io.BytesIO(packed(tree)), tree.name)
        assert taken.digest == tree.digest()
        assert (taken.files, taken.size) == (len(tree.files), tree.size)
        arrived = {
            item.key.removeprefix(taken.url.key): (
                b"".join(store.read(BUCKET, item.key)),
                item.metadata.get("mode") == "755",
            )
            for item in store.walk(BUCKET, taken.url.key)
        }
        store.close()
    assert arrived == {path: made[path] for path in paths(tree)}
    assert arrived == made


def test_messages_show_any_name() -> None:
    assert printable("a\udcffb") == r"a\xffb"


def test_the_import_is_light() -> None:
    """The client's imports are most of a command's time."""
    script = "import sys; import danlu.faces.cli.code; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"tarfile", "sqlite3", "asyncio", "concurrent", "ssl", "subprocess", "json"}
