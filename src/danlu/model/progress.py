r"""Progress bars in logs: a program that writes `\r` begins its line anew."""

from __future__ import annotations


def folded(line: bytes) -> bytes:
    r"""A line, without its end, as it stood at last: what follows its last carriage return.

    One that ends with carriage returns (`100%\r`, or a line of Windows) keeps what is in front
    of them.
    """
    if b"\r" not in line:
        return line
    shown = line.rstrip(b"\r")
    return shown[shown.rfind(b"\r") + 1 :]
