"""What an environment needs beside its own directory."""

from __future__ import annotations

from pathlib import Path

from danlu.node import interpreter


def test_an_interpreter_below_the_root_does_not_open_the_root(tmp_path: Path) -> None:
    """Debian's `/bin/python3 -m venv` writes `home = /bin`."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/usr/bin/python3")
    (tmp_path / "pyvenv.cfg").write_text("home = /bin\n")
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "root.pth").write_text("/\n/opt\n")

    found = interpreter.needs(str(tmp_path / "bin" / "python"), {"CUDA_HOME": "/"})

    assert "/" not in found
    assert {str(tmp_path), "/usr", "/opt"} <= set(found)


def test_packages_that_are_installed_where_they_are_edited_are_within_reach(
    tmp_path: Path,
) -> None:
    """A line of a `.pth` file may be meant from where the file lies."""
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (tmp_path / "mine" / "src").mkdir(parents=True)
    (tmp_path / "其他").mkdir()
    lines = f"# mine\n../../../../mine/src\n\nimport os\n{tmp_path}/其他\nnone\n"
    (packages / "edited.pth").write_text(lines, "utf-8")
    found = interpreter.needs(str(tmp_path / "env" / "bin" / "python"), {})
    assert {f"{tmp_path}/mine/src", f"{tmp_path}/其他"} <= set(found)
    assert not [path for path in found if path.endswith(("none", "import os", "site-packages"))]


def test_the_directories_that_packages_come_from_are_within_reach(tmp_path: Path) -> None:
    found = interpreter.needs(
        str(tmp_path / "bin" / "python"),
        {"PIP_FIND_LINKS": "/opt/wheels https://a.example/x file:///opt/my%20wheels",
         "UV_FIND_LINKS": "/srv/a,/srv/b"},
    )  # fmt: skip
    assert {"/opt/wheels", "/opt/my wheels", "/srv/a", "/srv/b"} <= set(found)
    assert not [path for path in found if "example" in path]
