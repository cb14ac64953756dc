"""danlu run: submit a job, show its log, end as it ends."""

from __future__ import annotations

import os

from danlu.faces.cli import request
from danlu.faces.cli.attached import detached, submitted
from danlu.faces.cli.client import TOKEN
from danlu.faces.cli.failure import INTERRUPTED, USAGE, Failure
from danlu.faces.cli.interrupt import Held
from danlu.faces.cli.request import Work
from danlu.faces.cli.session import Session, utf8
from danlu.faces.cli.table import command

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from collections.abc import Iterator
    from typing import Any


def run(
    session: Session,
    *,
    words: tuple[str, ...],
    file: str | None,
    detach: bool,
    dry_run: bool,
    **options: Any,
) -> int:
    """Submit what the words, the options and the file say, and stay with it unless told not to."""
    sending = Sending(session, dry=dry_run)
    body = create_body(session, file, words, options, sending)
    if dry_run:
        from danlu.faces.cli.plan import show_plan

        query = {"unsent": ",".join(sending.unsent(body))}
        return show_plan(session, session.client().post("jobs", "plan", body=body, query=query))
    job, interrupted = _submit(session, body)
    if interrupted:
        detached(session, job)
        return INTERRUPTED
    return submitted(session, job, detach=detach)


def create_body(
    session: Session,
    file: str | None,
    words: tuple[str, ...],
    options: dict[str, Any],
    sending: Sending | None = None,
) -> dict[str, Any]:
    """What `danlu run` sends for a file or for words; code and inputs are taken to the server."""
    sending = sending or Sending(session)
    if file is not None:
        body, work = _of_file(sending, file, words, options)
    else:
        body, work = {}, _of_words(session, words, options)
    if options["image"] is not None:
        options = {**options, "image": _image(session, options["image"])}
    _apply(body, work, options)
    if str(body["algorithm"].get("boot_file", "")).endswith(request.NOTEBOOK):
        options = {**options, "outputs": _with_executed(body, options["outputs"])}
    home = f"obs://danlu/jobs/{body['metadata']['name']}-{os.urandom(4).hex()}/outputs/"
    _channels(sending, body, home, options)
    if work.code:
        _send_code(sending, work, body)
        if not sending.dry:
            _note_commit(session, work.code, body)
    return body


def _with_executed(body: dict[str, Any], outputs: tuple[str, ...]) -> tuple[str, ...]:
    """The outputs, with one for the executed copy of a notebook."""
    named = {_name(one) for one in _list(body["algorithm"], "outputs")}
    named.update(one.partition("=")[0] for one in outputs)
    return outputs if request.EXECUTED in named else (*outputs, request.EXECUTED)


def _image(session: Session, word: str) -> str:
    """The image that is meant: by name or id as it stands, a lock's file by the id that it has."""
    word = utf8(word, "--image")
    if not word.endswith(".json"):
        return word
    from danlu.faces.cli.images import of_file

    return of_file(session, word)


def submit(session: Session, body: dict[str, Any]) -> Any:
    """Submit a create body once, however often it is sent; the job."""
    return _submit(session, body)[0]


def _of_words(session: Session, words: tuple[str, ...], options: dict[str, Any]) -> Work:
    code, no_code = options["code"], options["no_code"]
    if not words:
        raise Failure(USAGE, "nothing-to-run")
    if words[0] == "--":
        return request.command_work(words[1:], code, no_code=no_code)
    if no_code:
        raise Failure(USAGE, "no-code-script")
    script, args = words[0], list(words[1:])
    _warn_of_own_options(session, script, args)
    return request.script_work(script, args, code)


def _warn_of_own_options(session: Session, script: str, args: list[str]) -> None:
    """Options of danlu that stand behind the script go to the script: say so, it may be a slip."""
    row = command("run")
    own = {flag for one in (row.options if row else ()) for flag in one.flags if len(flag) > 2}
    for arg in args:
        if arg == "--":
            break
        flag = arg.partition("=")[0]
        if flag in own:
            session.say("option-behind-script", option=flag, script=os.path.basename(script))
            break


def _of_file(
    sending: Sending, file: str, words: tuple[str, ...], options: dict[str, Any]
) -> tuple[dict[str, Any], Work]:
    from danlu.faces.cli import jobfile

    if words:
        raise Failure(USAGE, "file-and-words", word=words[0])
    body = jobfile.read(file)
    base = jobfile.directory(file)
    for field, obs in jobfile.local_places(body):
        path = os.path.join(base, os.path.expanduser(obs["obs_url"]))
        inside = field.startswith("algorithm.inputs")
        if inside and sending.remote:
            obs["obs_url"] = sending.data(path, field)
        else:
            obs["obs_url"] = request.place(path, field, remote=sending.remote, must_exist=inside)
    algorithm = body.get("algorithm")
    code = options["code"]
    if code is None and isinstance(algorithm, dict):
        given = algorithm.get("code_dir")
        if isinstance(given, str) and jobfile.is_local(given):
            code = os.path.join(base, os.path.expanduser(given))
    name = request.job_name(os.path.basename(file))
    return body, Work(code=request.code_directory(code) if code else "", name=name)


def _apply(body: dict[str, Any], work: Work, options: dict[str, Any]) -> None:
    """Put what the options say into `body`; what they do not say stays as the file has it."""
    metadata, algorithm = _object(body, "metadata"), _object(body, "algorithm")
    if options["name"] is not None or "name" not in metadata:
        metadata["name"] = utf8(options["name"] or "", "--name") or work.name
    if options["description"] is not None:
        metadata["description"] = utf8(options["description"], "--description")
    _program(algorithm, work, options)
    parameters = [*work.parameters, *request.assignments(options["params"], "--param")]
    _list(algorithm, "parameters").extend(
        {"name": name, "value": value} for name, value in parameters
    )
    _object(algorithm, "environments").update(request.assignments(options["envs"], "--env"))
    spec, extras = _object(body, "spec"), _object(body, "danlu")
    resource = _object(spec, "resource")
    if options["flavor"] is not None:
        resource["flavor_id"] = utf8(options["flavor"], "--flavor")
    if options["nodes"] is not None:
        resource["node_count"] = options["nodes"]
    if options["priority"] is not None:
        _object(spec, "schedule_policy")["priority"] = options["priority"]
    if options["time_limit"] is not None:
        spec.pop("auto_stop", None)
        extras["time_limit_s"] = request.duration_s(options["time_limit"], "--time-limit")
    if options["grace"] is not None:
        extras["grace_s"] = request.duration_s(options["grace"], "--grace")
    _ends(extras, options)
    _packages(extras, options)
    if options["require_isolation"]:
        extras["require_isolation"] = True
    if options["ssh"]:
        extras["ssh"] = True
    if options["log_limit"] is not None:
        extras["log_limit_mib"] = options["log_limit"]


def _packages(extras: dict[str, Any], options: dict[str, Any]) -> None:
    """What is installed for the job alone."""
    if options["packages"]:
        _list(extras, "packages").extend(utf8(one, "--with") for one in options["packages"])
    if options["override_image"]:
        extras["override_image"] = True


def _program(algorithm: dict[str, Any], work: Work, options: dict[str, Any]) -> None:
    """What is run, and in which image."""
    if work.boot_file:
        algorithm["boot_file"] = work.boot_file
    if work.command:
        algorithm["command"] = work.command
    if options["image"] is not None:
        engine = _object(algorithm, "engine")
        engine.clear()
        engine["image_url"] = options["image"]


def _ends(extras: dict[str, Any], options: dict[str, Any]) -> None:
    """How the job is ended, and what follows."""
    if options["stop_signal"] is not None:
        extras["stop_signal"] = utf8(options["stop_signal"], "--stop-signal")
    if options["retries"] is not None:
        extras["retries"] = options["retries"]
    if options["retry_on"] is not None:
        extras["retry_on"] = request.causes(options["retry_on"])
    for action, key in (("no-retry", "no_retry_log"), ("avoid-node", "avoid_node_log")):
        for match in options[key]:
            rule = {"match": utf8(match, f"--{action}-on-log"), "action": action}
            _list(extras, "log_rules").append(rule)
    if options["hang_after"] is not None:
        extras["hang_after_s"] = request.duration_s(options["hang_after"], "--hang-after")
    if options["on_hang"] is not None:
        extras["on_hang"] = options["on_hang"]


def _channels(sending: Sending, body: dict[str, Any], home: str, options: dict[str, Any]) -> None:
    given = (*options["inputs"], *options["outputs"])
    remote = bool(given) and sending.remote
    algorithm = body["algorithm"]
    for kind, channels in (
        ("inputs", request.inputs(options["inputs"], sending.data if remote else None)),
        ("outputs", request.outputs(options["outputs"], home, remote=remote)),
    ):
        named = {channel["name"] for channel in channels}
        kept = [one for one in _list(algorithm, kind) if _name(one) not in named]
        algorithm[kind] = [*kept, *channels]
    if options["prefetch"]:
        for one in algorithm["outputs"]:
            one["prefetch_to_local"] = True


class Sending:
    """Takes code and inputs of this machine to the server; with `dry` it only says where to."""

    def __init__(self, session: Session, *, dry: bool = False) -> None:
        self._session = session
        self.dry = dry
        self._left: set[str] = set()

    @property
    def remote(self) -> bool:
        """Whether the server is elsewhere."""
        return not self._session.client().endpoint.data

    def data(self, path: str, option: str) -> str:
        """The place of an input; `option` says who has named it."""
        from danlu.faces.cli.obs.sending import send

        return self._noted(send(self._session, path, option, dry=self.dry))

    def code(self, directory: str) -> str:
        """The place of a code directory; empty where there is nothing in it."""
        from danlu.faces.cli.upload import planned, upload

        if self.dry:
            return self._noted(planned(self._session, directory))
        return upload(self._session, directory)

    def unsent(self, body: dict[str, Any]) -> Iterator[str]:
        """The fields of a create body that name what has not been sent."""
        algorithm = body["algorithm"]
        if algorithm.get("code_dir") in self._left:
            yield "algorithm.code_dir"
        for number, one in enumerate(algorithm["inputs"]):
            if one.get("remote", {}).get("obs", {}).get("obs_url") in self._left:
                yield f"algorithm.inputs[{number}].remote.obs.obs_url"

    def _noted(self, place: str) -> str:
        if self.dry and place:
            self._left.add(place)
        return place


def _send_code(sending: Sending, work: Work, body: dict[str, Any]) -> None:
    algorithm = body["algorithm"]
    place = sending.code(work.code)
    if not place:
        algorithm.pop("code_dir", None)  # a job file may name it
        return
    algorithm["code_dir"] = place
    if "command" in algorithm and "working_dir" not in algorithm:
        # A command begins where a script would: in its code.
        name = algorithm["code_dir"].rstrip("/").rpartition("/")[2]
        algorithm["working_dir"] = f"{request.CODE_ROOT}/{name}"


def _note_commit(session: Session, code: str, body: dict[str, Any]) -> None:
    """Put on record which commit the code was at, and what was changed since."""
    from danlu.faces.cli import repository, upload

    found = repository.look(code)
    if found is None:
        return
    notes = _object(_object(body, "metadata"), "annotations")
    notes.setdefault(repository.COMMIT, found.commit)
    notes.setdefault(repository.DIRTY, "false" if found.diff == b"" else "true")
    if found.diff:
        place = upload.upload_file(session, repository.DIFF_FILE, found.diff)
        notes.setdefault(repository.DIFF, f"{place.rstrip('/')}/{repository.DIFF_FILE}")


def _submit(session: Session, body: dict[str, Any]) -> tuple[Any, bool]:
    """The job, and whether Ctrl-C was pressed meanwhile: the answer says what was made."""
    token = {TOKEN: os.urandom(16).hex()}
    client = session.client()
    with Held() as held:
        job = client.post("jobs", body=body, headers=token)
    return job, held.pressed


def _object(parent: dict[str, Any], key: str) -> dict[str, Any]:
    value = parent.setdefault(key, {})
    if not isinstance(value, dict):
        raise Failure(USAGE, "field-not-object", field=key)
    return value


def _list(parent: dict[str, Any], key: str) -> list[Any]:
    value = parent.setdefault(key, [])
    if not isinstance(value, list):
        raise Failure(USAGE, "field-not-list", field=key)
    return value


def _name(channel: Any) -> object:
    return channel.get("name") if isinstance(channel, dict) else None
