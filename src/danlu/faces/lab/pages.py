"""What a notebook's origin shows where Lab is not: a page for people, JSON for programs."""

from __future__ import annotations

import base64
import hashlib
import html

from danlu.faces.http.headers import Headers
from danlu.faces.http.reply import Reply, error_reply
from danlu.faces.lab.instance import Instance, Phase
from danlu.model.errors import Denied, Missing, PlatformError, Unavailable
from danlu.model.texts import Language, text

HTML = b"text/html; charset=utf-8"
AGAIN_S = 2
STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;margin:15vh auto;max-width:42rem;padding:0 1.5rem;"
    "color:#222;background:#fafafa}h1{font-size:1.4rem;margin:0 0 .5rem}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
SECURITY = [
    (
        b"content-security-policy",
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'".encode(),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    # One address, two languages, and two forms.
    (b"vary", b"Accept, Accept-Language, Cookie"),
]
WAITING = (Phase.STARTING, Phase.STOPPING, Phase.RUNNING)
"""What passes by itself."""


def problem_of(one: Instance, language: Language) -> PlatformError:
    """Why Lab cannot be seen, for a notebook that does not run, or does not answer."""
    detail = one.detail.zh if language == "zh" else one.detail.en
    key = "lab-silent" if one.phase is Phase.RUNNING else f"lab-{one.phase}"
    http = 502 if one.phase is Phase.RUNNING else 503
    return Unavailable(
        key,
        http=http,
        name=one.name,
        notebook=one.notebook,
        detail=detail or text("lab-no-detail", language),
        wait_s=AGAIN_S,
    )


def reply(
    problem: PlatformError,
    headers: Headers,
    language: Language,
    request_id: str,
    one: Instance | None = None,
) -> Reply:
    """The answer that says what the problem is, in the form that was asked for."""
    made = error_reply(problem, request_id, language)
    # 401 would have the browser look for a name and a password.
    made.headers = [item for item in made.headers if item[0] != b"www-authenticate"]
    if _is_page(headers):
        made.body = _page(problem, language, one)
        made.media = HTML
    made.headers.extend(SECURITY)
    return made


def _is_page(headers: Headers) -> bool:
    """Whether a person will look at the answer."""
    target = headers.any("sec-fetch-dest")
    return target == "document" if target else "text/html" in headers.any("accept")


def _page(problem: PlatformError, language: Language, one: Instance | None) -> bytes:
    heading = text(f"lab-heading-{_kind(problem, one)}", language)
    parts = [f"<h1>{html.escape(heading)}</h1>", f"<p>{html.escape(problem.message(language))}</p>"]
    waits = one is not None and one.phase in WAITING and isinstance(problem, Unavailable)
    if waits:
        parts.append(f"<p>{html.escape(text('lab-looks-again', language))}</p>")
    again = f'<meta http-equiv="refresh" content="{AGAIN_S}">' if waits else ""
    tag = "zh-CN" if language == "zh" else "en"
    title = html.escape(f"{one.name}: {heading}" if one is not None else heading)
    return (
        f'<!doctype html><html lang="{tag}"><head><meta charset="utf-8">{again}'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>"
    ).encode()


def _kind(problem: PlatformError, one: Instance | None) -> str:
    if isinstance(problem, Missing):
        return "missing"
    if isinstance(problem, Denied) or one is None:
        return "denied"
    return "silent" if one.phase is Phase.RUNNING else one.phase.value
