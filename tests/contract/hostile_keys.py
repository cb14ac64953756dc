"""Keys that somebody might send to get out of a store, into a shell, or at another object."""

from __future__ import annotations

_CLIMBS: tuple[str, ...] = (
    "..",
    "../..",
    "../../../../../../../../etc",
    "..\\..",
    "..;",
    "%2e%2e",
    "%252e%252e",
)
_CLIMBS += ("..%2f..", "..%c0%af", "．．", "..\u2215..", "..\u29f8..", ".\u200d.", "..\0", ".. ")
_TARGETS = ("", "/", "/passwd", "/index.db", "/danlu/index.db", "//passwd", "/./passwd", "\\passwd")
_STARTS = ("", "/", "a/", "./", "//")
_NAMES = (
    *("index.db", "index.db-wal", "incoming", "incoming/x", "blobs/0/x", "reserve", "lost+found"),
    *("CON", "NUL", "aux.txt", "COM1", "a:b", "a::$DATA", "c:\\windows", "\\\\host\\share"),
    *("/etc/passwd", "/proc/self/environ", "/dev/null", "~root/.ssh/id_rsa", "$HOME", "${PATH}"),
    *(
        "`id`",
        "$(id)",
        ";id",
        "|id",
        "&id",
        "\nid",
        "a\r\nSet-Cookie: b",
        "-rf",
        "--help",
        "*",
        "?",
    ),
    *("'; DROP TABLE objects; --", '" OR ""="', "<script>", "&amp;", "]]>", "<!DOCTYPE a>", "&#0;"),
    *("a?uploads", "a?delete", "a#b", "a%00b", "a%0ab", "a+b", "a b", "a&b=c", "a;b=c", "a=b,c=d"),
    *(
        "\0",
        "a\0",
        "\0a",
        "\x01",
        "\x1b[2J",
        "\x7f",
        "\x80",
        "\xa0",
        "\u2028",
        "\ufeffa",
        "\u202ea",
    ),
    *("\ufffe", "\uffff", "\U0010ffff", "\U0001f525", "e\u0301", "\xe9", "\u1e9e", "ss", "ẞ", "İ"),
    *(
        ".",
        "./",
        "./.",
        "...",
        "a/.",
        "a/..",
        "a/./",
        "a/../",
        "a//",
        "//",
        "///",
        "/",
        "a/b/../../c",
    ),
    *(" ", "  ", "a ", " a", "\t", "\n", "\r", "\v", "\f", "\x85", "a\\", "\\", "\\\\"),
    *("x" * 255, "x" * 256, "x" * 1024, "x/" * 512, "é" * 512, "火" * 341, "a" + "/" * 1023),
    *(".git/config", ".env", ".danlu-part-x", ".danlu", "danlu.toml", "server.json", "..data"),
)

HOSTILE = sorted(
    {
        *(f"{start}{climb}{end}" for start in _STARTS for climb in _CLIMBS for end in _TARGETS),
        *_NAMES,
    },
    key=str.encode,
)
