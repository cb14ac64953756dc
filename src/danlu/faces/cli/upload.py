"""Sends a code directory to the server, unless it has it already."""

from __future__ import annotations

import io
import os

from danlu.faces.cli.client import Client
from danlu.faces.cli.code import CodeTree, scan
from danlu.faces.cli.failure import MISSING, Failure
from danlu.faces.cli.http import Send
from danlu.faces.cli.session import Session
from danlu.faces.cli.view import size

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing_extensions import Buffer

TOLD_BYTES = 8 << 20
"""A smaller upload is over before anyone has read about it."""
BLOCK_BYTES = 256 << 10
SEND_S = 300.0


def upload(session: Session, directory: str) -> str:
    """The storage path under which the server has the content of `directory`; empty where there
    is nothing to send.
    """
    tree = scan(directory)
    if not tree.files:
        return ""
    if tree.credentials:
        session.say("code-credentials", paths=", ".join(tree.credentials[:5]))
    digest = tree.digest()
    client = session.client()
    try:
        stored = client.get("code", digest, query={"name": tree.name})
    except Failure as failure:
        if failure.exit_status != MISSING:
            raise
        stored = _send(session, client, tree, digest)
    return str(stored["code_dir"])


def planned(session: Session, directory: str) -> str:
    """Where the server would have the content of `directory`; empty where there is nothing in it.
    Nothing is sent.
    """
    tree = scan(directory)
    return f"obs://{session.get('status')['bucket']}/code/{tree.name}/" if tree.files else ""


def upload_file(session: Session, name: str, content: bytes) -> str:
    """The storage path of a directory that holds this one file."""
    import tempfile

    with tempfile.TemporaryDirectory() as above:
        directory = os.path.join(above, "git")
        os.mkdir(directory)
        with open(os.path.join(directory, name), "wb") as file:
            file.write(content)
        return upload(session, directory)


def _send(session: Session, client: Client, tree: CodeTree, digest: str) -> dict[str, object]:
    if tree.size >= TOLD_BYTES:
        session.say("code-sending", files=len(tree.files), size=size(tree.size))

    def body(send: Send) -> None:
        target = io.BufferedWriter(_Pieces(send), BLOCK_BYTES)
        tree.write_tar(target)
        target.flush()

    response = client.send(
        "POST",
        ("code",),
        {"digest": digest, "name": tree.name},
        body=body,
        content_type="application/x-tar",
        timeout_s=SEND_S,
    )
    answer: dict[str, object] = client.answer(response)
    return answer


class _Pieces(io.RawIOBase):
    """A file that sends what is written to it; buffered, so that small files share a packet."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Buffer) -> int:
        """Send a piece."""
        piece = bytes(data)
        self._send(piece)
        return len(piece)
