"""Lines of a log by their numbers, and the lines that hold a text."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.faces.http.live import Answer, Live
from tests.faces.http.test_log import running, stop, written
from tests.faces.http.test_log_limit import HEAD, LONG, TAIL, beyond, marked

TEXT = b"".join(b"line %d\n" % number for number in range(1, 5001)) + b"unended"


def lines(shared: Live, job_id: str, query: str) -> Answer:
    return shared.call("GET", f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log/lines{query}")


def search(shared: Live, job_id: str, text: str, query: str = "") -> Answer:
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log/search?text={quote(text)}{query}"
    return shared.call("GET", target)


def place(answer: Answer) -> tuple[int, int, int, int]:
    """Line, offset, next and until."""
    names = ("line", "offset", "next", "until")
    line, offset, following, until = (int(answer.headers[f"x-log-{name}"]) for name in names)
    return line, offset, following, until


def test_a_window_anywhere(shared: Live) -> None:
    job_id = written(shared, TEXT)
    whole = TEXT.split(b"\n")
    for first, last in ((1, 1), (1, 100), (2345, 2444), (4990, 5001), (5000, 9000)):
        answer = lines(shared, job_id, f"?range={first}:{last}")
        body = b"\n".join(whole[first - 1 : last]) + b"\n" * (last < 5001)
        offset = len(b"\n".join(whole[: first - 1])) + (first > 1)
        assert answer.body == body
        assert place(answer) == (first, offset, offset + len(body), offset + len(body))
    assert lines(shared, job_id, "?range=:2").body == b"line 1\nline 2\n"
    assert lines(shared, job_id, "?range=5000:").body == b"line 5000\nunended"
    assert lines(shared, job_id, "?last=2").body == b"line 5000\nunended"
    assert lines(shared, job_id, "?last=0").body == b""
    assert lines(shared, job_id, "?last=99999").body == TEXT
    assert lines(shared, job_id, "?range=9000:").body == b""


def test_what_is_more_than_the_limit_is_read_on_by_offset(shared: Live) -> None:
    job_id = written(shared, TEXT)
    answer = lines(shared, job_id, "?range=10:20&limit=8")
    line, offset, following, until = place(answer)
    assert (line, following - offset, answer.body) == (10, 8, b"line 10\n")
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log"
    rest = shared.call("GET", f"{target}?offset={following}&limit={until - following}").body
    assert rest == b"".join(b"line %d\n" % number for number in range(11, 21))


@pytest.mark.parametrize(
    "query",
    ["?range=0:4", "?range=x", "?range=5", "?range=-1:2", "?range=1:2&last=3", "?last=-1", "?x=1"],
)
def test_lines_that_cannot_be_asked_for(shared: Live, query: str) -> None:
    job_id = running(shared, (0.0, b"x\n"))
    assert lines(shared, job_id, query).status == 400
    stop(shared, job_id)


def test_lines_around_what_was_dropped(shared: Live) -> None:
    job_id = beyond(shared)
    kept = LONG.count(b"\n", 0, TAIL) + 1
    behind = lines(shared, job_id, f"?range={kept}:{kept + 9}")
    assert behind.body == LONG[TAIL : TAIL + 100]
    assert (place(behind)[0], "x-log-dropped-bytes" in behind.headers) == (kept, False)
    within = lines(shared, job_id, f"?range={kept - 5}:{kept + 9}")
    assert within.body == behind.body
    assert within.headers["x-log-line"] == str(kept)
    assert within.headers["x-log-dropped-bytes"] == str(TAIL - HEAD)
    shown = "".join(
        shared.call(
            "GET", f"/v2/{{p}}/training-jobs/{job_id}/logs/worker-0?order=asc&base_line={base}"
        ).json["content"]
        for base in (HEAD // 10 - 25, kept - 1 + 24)
    ).encode()
    mark = shown[250:-740]
    assert marked(mark)
    assert shown == LONG[HEAD - 250 : HEAD] + mark + LONG[TAIL : TAIL + 740]


def test_lines_that_hold_a_text(shared: Live) -> None:
    job_id = written(shared, TEXT)
    wanted = [n for n in range(1, 5001) if "99" in str(n)]
    plain = search(shared, job_id, "99")
    assert plain.body == b"".join(b"line %d\n" % n for n in wanted)
    numbered = search(shared, job_id, "99", "&numbers=1").body.splitlines()
    for n, found in zip(wanted, numbered, strict=True):
        number, at, line = found.split(b":", 2)
        assert (int(number), line) == (n, b"line %d" % n)
        assert TEXT[int(at) :].startswith(line + b"\n")
    assert search(shared, job_id, "nowhere").body == b""
    assert search(shared, job_id, "nended").body == b"unended\n"
    assert search(shared, job_id, "(a+)+$").body == b""
    offset = TEXT.index(b"line 4000\n")
    later = search(shared, job_id, "99", f"&offset={offset}&numbers=1").body
    assert later == b"\n".join(numbered[-len(later.splitlines()) :]) + b"\n"


@pytest.mark.parametrize("query", ["", "&offset=-1", "&numbers=2", "&x=1"])
def test_a_search_for_what_cannot_be_found(shared: Live, query: str) -> None:
    job_id = written(shared, b"x")
    text = "x" if query else ""
    assert search(shared, job_id, text, query).status == 400
    assert search(shared, job_id, "a\nb").status == 400
    assert search(shared, job_id, "x" * 257).status == 400


def test_lines_of_a_binary_log(shared: Live) -> None:
    """(case 17) (fault 46) Bytes that are no text, and a line of a megabyte, are lines as well."""
    odd = [b"\xff\xfe\x00", b"x" * (1 << 20), b"", b"\x1b[2J\xe4\xb8", b"end"]
    job_id = written(shared, b"\n".join(odd) + b"\n")
    for number, line in enumerate(odd, 1):
        answer = lines(shared, job_id, f"?range={number}:{number}&limit={8 << 20}")
        assert answer.body == line + b"\n", number
    target = f"/v2/{{p}}/training-jobs/{job_id}/logs/worker-0?order=asc"
    content = shared.call("GET", target).json["content"]
    assert content.split("\n")[:-1] == [line.decode("utf-8", "replace") for line in odd]
    assert search(shared, job_id, "x" * 200).body == odd[1] + b"\n"


def test_a_search_of_other_peoples_logs(shared: Live) -> None:
    job_id = written(shared, b"secret\n")
    workspace, key = shared.another(f"eve-{job_id[:8]}")
    for path in ("lines", "search?text=secret"):
        target = f"/danlu/v1/{workspace.id}/jobs/{job_id}/tasks/worker-0/log/{path}"
        assert shared.call("GET", target, key=key).status == 404
