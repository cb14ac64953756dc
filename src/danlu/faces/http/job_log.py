"""ModelArts' calls on a job's logs, events and metrics."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from urllib.parse import quote

from danlu.faces.http.call import Call
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.job import JOB
from danlu.faces.http.reply import Answer, Streamed, json_reply
from danlu.faces.http.route import Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.flow import lines, logs, metrics, refs
from danlu.model.errors import Denied, Invalid, Missing
from danlu.model.job import JobView
from danlu.model.texts import Language
from danlu.ports.records import EventQuery
from danlu.wire import modelarts_training_watch as watch
from danlu.wire.shape import STRING

LINK = "/danlu/v1/links/{workspace}/{job}/{task}"
LINK_S = 300
LINK_MEDIA = ("text/plain", "application/octet-stream")
MOSTBY_EVENT = 10_000
MOST_LINES = 500
WHOLE = {"type": "integer"}

BY_LINE = (
    Parameter("base_line", STRING, "the line to go on from; empty = the log's end"),
    Parameter("lines", {**WHOLE, "minimum": 1, "maximum": MOST_LINES}),
    Parameter("order", {"type": "string", "enum": ["asc", "desc"]}, "desc = newest first"),
)


BY_EVENT = (
    Parameter("offset", {**WHOLE, "minimum": 0}, "the number of the page, from 0"),
    Parameter("limit", {**WHOLE, "minimum": 1, "maximum": 100}),
    Parameter("order", {"type": "string", "enum": ["asc", "desc"]}),
    Parameter("start_time", STRING, "UTC milliseconds or ISO 8601; together with end_time"),
    Parameter("end_time", STRING, "UTC milliseconds or ISO 8601; together with start_time"),
    Parameter("level", {"type": "string", "enum": ["Info", "Warning", "Error"]}),
    Parameter("pattern", {"type": "string", "maxLength": 256}, "what the message contains"),
    Parameter("X-Language", about="zh-cn or en-us", place="header"),
)

routes = Routes()


def _rule(verb: str) -> Rule:
    return Rule(f"modelarts:trainJob:{verb}", Access.PROJECT)


def _asked(server: Server, call: Call) -> tuple[JobView, str]:
    """The job and task that the path names; Missing where there are none."""
    view = server.view(call.caller.workspace.id, call.job_id())
    task = call.params["task_id"]
    refs.ref(view, task)
    return view, task


@routes(
    "GET",
    f"{JOB}/tasks/{{task_id}}/logs/preview",
    rule=_rule("getLogs"),
    about=Describe("The end of a task's log", {200: watch.PREVIEW_SCHEMA}),
)
async def show_training_job_logs_preview(server: Server, call: Call) -> Answer:
    """The last 5 MiB of a log; an empty text where nothing was written yet."""
    view, task = _asked(server, call)
    data, size = await server.on_worker(_preview, server, view, task, call.language)
    return json_reply(watch.preview(data, size))


def _preview(server: Server, view: JobView, task: str, language: Language) -> tuple[bytes, int]:
    size = server.index(view, task).end()
    start = max(0, size - watch.PREVIEW_BYTES)
    return b"".join(logs.pieces(server.platform, view, task, language, start, size)), size


@routes(
    "GET",
    f"{JOB}/logs/{{task_id}}",
    rule=_rule("getLogs"),
    about=Describe("Lines of a task's log", {200: watch.LINES_SCHEMA}, parameters=BY_LINE),
)
async def show_training_job_logs_from_aom(server: Server, call: Call) -> Answer:
    """Lines after `base_line` (asc) or before it (desc), at most `lines` of them."""
    call.only("base_line", "lines", "order")
    view, task = _asked(server, call)
    count = call.number("lines", 50, 1, MOST_LINES)
    order = call.choice("order", "desc", "asc")
    base = call.number("base_line", 0, 0, 1 << 53) if call.query.get("base_line") else None
    page = await server.on_worker(_page, server, view, task, base, count, order, call.language)
    return json_reply(watch.lines(page.lines, page.first, page.last, descending=order == "desc"))


def _page(
    server: Server,
    view: JobView,
    task: str,
    base: int | None,
    count: int,
    order: str,
    language: Language,
) -> lines.Page:
    index = server.index(view, task)
    if order == "asc":
        return index.page((base or 0) + 1, count, language=language)
    last = index.total() if base is None else min(base - 1, index.total())
    kept = index.kept(last)
    # One line less of what comes before a gap: the gap is told of in one.
    first = max(1, kept - count + 1 + (kept < last))
    return index.page(first, min(count, last), last, language)


@routes(
    "GET",
    f"{JOB}/metrics/{{task_id}}",
    rule=_rule("getMetrics"),
    about=Describe("A task's use of the machine, a minute", {200: watch.METRICS_SCHEMA}),
)
async def show_training_job_metrics(server: Server, call: Call) -> Answer:
    """One average a minute; -1 where nothing is known."""
    view, task = _asked(server, call)
    found = await server.on_worker(metrics.minutes, server.platform, view, task)
    return json_reply(watch.metrics(found))


@routes(
    "GET",
    f"{JOB}/events",
    rule=_rule("listEvents"),
    about=Describe("What happened to a job", {200: watch.EVENTS_SCHEMA}, parameters=BY_EVENT),
)
async def list_training_job_events(server: Server, call: Call) -> Answer:
    """A page of events, the oldest first unless `order` is desc."""
    call.only("offset", "limit", "order", "start_time", "end_time", "level", "pattern")
    limit = call.number("limit", 50, 1, 100)
    page = call.number("offset", 0, 0, 1 << 53)
    order = call.choice("order", "asc", "desc")
    level = call.choice("level", "", "Info", "Warning", "Error")
    since, until = instant_of(call, "start_time"), instant_of(call, "end_time")
    if (since is None) != (until is None):
        missing = "start_time" if since is None else "end_time"
        raise Invalid("field-missing", field=missing, remedy="send both times or none")
    pattern = call.text("pattern")
    job_id = call.job_id()
    query = EventQuery([level] if level else [], since, until, limit=MOSTBY_EVENT)
    found = server.platform.records.events(call.caller.workspace.id, job_id, query)
    listed = [watch.event(event, call.language) for event in found]
    if pattern:
        listed = [event for event in listed if pattern in event["message"]]
    if order == "desc":
        listed.reverse()
    echoed = {
        "limit": limit,
        "offset": page,
        "order": order,
        "start_time": call.text("start_time"),
        "end_time": call.text("end_time"),
    }
    start = page * limit
    return json_reply(watch.events(listed[start : start + limit], len(listed), echoed))


def instant_of(call: Call, name: str) -> int | None:
    """An instant (UTC ms) from the query: milliseconds since 1970, or ISO 8601."""
    text = call.text(name, 64)
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        return round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise Invalid(
            "field-value",
            field=name,
            value=text,
            expected="UTC milliseconds since 1970, or a time such as 2026-01-31T23:59:59Z",
        ) from None


# ---------------------------------------------------------------- links


@routes(
    "GET",
    f"{JOB}/tasks/{{task_id}}/logs/url",
    rule=_rule("getLogs"),
    about=Describe(
        "A link to a task's whole log, good for five minutes",
        {200: watch.LOG_URL_SCHEMA},
        parameters=(Parameter("Content-Type", about="the media type of the log"),),
    ),
)
async def show_obs_url_of_training_job_logs(server: Server, call: Call) -> Answer:
    """A link to the whole log that needs no credentials for five minutes."""
    call.only("Content-Type", "content_type")
    view, task = _asked(server, call)
    media = call.query.get("Content-Type") or call.query.get("content_type") or ""
    if not media:
        asked = call.header("content-type").partition(";")[0].strip()
        media = asked if asked in LINK_MEDIA else LINK_MEDIA[0]
    if media not in LINK_MEDIA:
        expected = f"one of {', '.join(LINK_MEDIA)}"
        raise Invalid("field-value", field="Content-Type", value=media, expected=expected)
    expires = server.now() // 1000 + LINK_S
    path = _link_path(view.job.workspace, view.job.id, task)
    signed = _link_signature(server, path, str(expires), media)
    where = f"{call.scope['scheme']}://{call.header('host')}{path}"
    url = f"{where}?expires={expires}&content_type={quote(media, safe='')}&signature={signed}"
    return json_reply({"obs_url": url})


def _link_path(workspace: str, job_id: str, task: str) -> str:
    return f"/danlu/v1/links/{workspace}/{job_id}/{task}"


def _link_signature(server: Server, path: str, expires: str, media: str) -> str:
    said = f"{path}\n{expires}\n{media}".encode("utf-8", "surrogatepass")
    return hmac.new(server.link_key, said, hashlib.sha256).hexdigest()


@routes(
    "GET",
    LINK,
    rule=Rule("modelarts:trainJob:getLogs", Access.LINK),
    about=Describe(
        "Follow a link to a log",
        {200: STRING},
        media="text/plain",
        parameters=tuple(Parameter(name) for name in ("expires", "content_type", "signature")),
    ),
)
async def download_log(server: Server, call: Call) -> Answer:
    """The whole log as it is now."""
    expires = call.query.get("expires", "")
    media = call.query.get("content_type", "")
    workspace, job_id, task = (call.params[name] for name in ("workspace", "job", "task"))
    expected = _link_signature(server, _link_path(workspace, job_id, task), expires, media)
    given = call.query.get("signature", "").encode("utf-8", "surrogatepass")
    if not hmac.compare_digest(expected.encode(), given):
        raise Denied("link-invalid")
    if not expires.isdigit() or int(expires) * 1000 < server.now():
        raise Denied("link-invalid")
    try:
        view = server.view(workspace, job_id)
    except Missing:
        raise Denied("link-invalid") from None
    kind = b"text/plain; charset=utf-8" if media == LINK_MEDIA[0] else media.encode()
    return Streamed(_whole(server, view, task, call.language), kind)


async def _whole(
    server: Server, view: JobView, task: str, language: Language
) -> AsyncGenerator[bytes, None]:
    end = await server.on_worker(server.index(view, task).end)
    pieces = logs.pieces(server.platform, view, task, language, 0, end)
    while piece := await server.on_worker(lambda: next(pieces, b"")):
        yield piece
