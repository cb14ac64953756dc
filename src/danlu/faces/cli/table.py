"""Commands, options and arguments as data.

Click's commands (`app.py`), the quick reader (`quick.py`), completion, the packaged help and the
documents' completeness check all come from this table. Help texts stand in `texts/options.py`
under `<command>`, `<command>.<option>` and, for options that several commands share, `.<option>`.
"""

from __future__ import annotations

from danlu.faces.cli.grammar import FLAG, NUMBER, SWITCH, Argument, Command, Option
from danlu.faces.cli.notebook_table import NOTEBOOK_COMMANDS

COMMON = (
    Option("data", "--data", metavar="DIR"),
    Option("server", "--server", metavar="URL|NAME"),
    Option("json", "--json", kind=FLAG),
    Option("quiet", "-q", "--quiet", kind=FLAG),
    Option("lang", "--lang", metavar="zh|en", choices=("zh", "en")),
    Option("color", "--color", kind=SWITCH, off=("--no-color",)),
    Option("debug", "--debug", kind=FLAG),
)
"""Options of every command; they may also stand before it."""

JOB = Argument("job", "JOB", completes="jobs")
IMAGE = Argument("image", "IMAGE")
JOBS = Argument("jobs", "JOB...", most=None, completes="jobs")

STATES = (
    "queued", "placed", "launching", "running", "stopping", "collecting",
    "succeeded", "failed", "cancelled", "lost",
)  # fmt: skip
"""The states of `model/attempt.py`, which is too slow to import for a list of names."""

_HOME = "danlu.faces.cli"

_ENDPOINT = Option("endpoint", "--endpoint", metavar="URL")
_RECURSIVE = Option("recursive", "-r", "--recursive", kind=FLAG)
_TASK = Option("task", "--task", metavar="TASK")
_DRY_RUN = Option("dry_run", "-n", "--dry-run", kind=FLAG)
_PLACE = Argument("place", "PLACE")
_PLACES = Argument("places", "SOURCE DEST", least=2, most=2)
_TRANSFER = (
    Option("include", "--include", metavar="PATTERN", many=True),
    Option("exclude", "--exclude", metavar="PATTERN", many=True),
    Option("follow_links", "--follow-links", kind=FLAG),
    Option("limit_rate", "--limit-rate", metavar="SIZE"),
    Option("threads", "-j", "--threads", kind=NUMBER, metavar="N", bounds=(1, 64)),
    _DRY_RUN,
    _ENDPOINT,
)
"""Options of everything that copies."""

COMMANDS: tuple[Command, ...] = (
    Command(
        "jobs",
        "run",
        f"{_HOME}.run:run",
        (
            Option("file", "-f", "--file", metavar="FILE"),
            Option("name", "--name", metavar="NAME"),
            Option("flavor", "--flavor", metavar="ID"),
            Option("image", "--image", metavar="IMAGE"),
            Option("packages", "--with", metavar="PACKAGE", many=True),
            Option("override_image", "--override-image", kind=FLAG),
            Option("nodes", "--nodes", kind=NUMBER, metavar="N", bounds=(1, 1024)),
            Option("inputs", "--input", metavar="NAME=PATH", many=True),
            Option("outputs", "--output", metavar="NAME[=PATH]", many=True),
            Option("prefetch", "--prefetch", kind=FLAG),
            Option("params", "--param", metavar="NAME=VALUE", many=True),
            Option("envs", "--env", metavar="NAME=VALUE", many=True),
            Option("code", "--code", metavar="DIR"),
            Option("no_code", "--no-code", kind=FLAG),
            Option("priority", "--priority", kind=NUMBER, metavar="1-3", bounds=(1, 3)),
            Option("time_limit", "--time-limit", metavar="TIME"),
            Option("grace", "--grace", metavar="TIME"),
            Option("stop_signal", "--stop-signal", metavar="SIGNAL"),
            Option("require_isolation", "--require-isolation", kind=FLAG),
            Option("ssh", "--ssh", kind=FLAG),
            Option("log_limit", "--log-limit", kind=NUMBER, metavar="MIB", bounds=(1, 1 << 20)),
            Option("retries", "--retries", kind=NUMBER, metavar="N", bounds=(0, 100)),
            Option("retry_on", "--retry-on", metavar="CAUSE[,CAUSE]"),
            Option("no_retry_log", "--no-retry-on-log", metavar="TEXT", many=True),
            Option("avoid_node_log", "--avoid-node-on-log", metavar="TEXT", many=True),
            Option("hang_after", "--hang-after", metavar="TIME"),
            Option(
                "on_hang",
                "--on-hang",
                metavar="notify|restart|stop",
                choices=("notify", "restart", "stop"),
            ),
            Option("description", "--description", metavar="TEXT"),
            Option("detach", "-d", "--detach", kind=FLAG),
            Option("dry_run", "--dry-run", kind=FLAG),
        ),
        (Argument("words", "SCRIPT [ARGS]...", least=0, most=None),),
        passes_on=True,
    ),
    Command(
        "jobs",
        "ps",
        f"{_HOME}.ps:ps",
        (
            Option("every", "-a", "--all", kind=FLAG),
            Option("state", "--state", metavar="STATE[,STATE]"),
            Option("name", "--name", metavar="NAME"),
            Option("count", "-n", kind=NUMBER, metavar="N", bounds=(1, 100_000)),
        ),
    ),
    Command("jobs", "show", f"{_HOME}.show:show", (), (JOB,)),
    Command(
        "jobs",
        "logs",
        f"{_HOME}.logs:logs",
        (
            Option("follow", "-f", "--follow", kind=FLAG),
            Option("task", "--task", metavar="TASK"),
            Option("attempt", "--attempt", kind=NUMBER, metavar="N", bounds=(1, 10_000)),
            Option("tail", "--tail", kind=NUMBER, metavar="N", bounds=(0, 2**40)),
            Option("lines", "--lines", metavar="FIRST:LAST"),
            Option("grep", "--grep", metavar="PATTERN"),
            Option("numbers", "-n", "--line-numbers", kind=FLAG),
            Option("raw", "--raw", kind=FLAG),
        ),
        (JOB,),
    ),
    Command(
        "jobs",
        "exec",
        f"{_HOME}.execute:execute",
        (
            _TASK,
            Option("interactive", "-i", "--interactive", kind=FLAG),
            Option("tty", "-t", "--tty", kind=FLAG),
        ),
        (Argument("words", "JOB -- COMMAND...", least=2, most=None, completes="jobs"),),
    ),
    Command("jobs", "shell", f"{_HOME}.execute:shell", (_TASK,), (JOB,)),
    Command(
        "jobs",
        "events",
        f"{_HOME}.events:events",
        (Option("count", "-n", kind=NUMBER, metavar="N", bounds=(1, 2**40)),),
        (JOB,),
    ),
    Command(
        "jobs",
        "outputs",
        f"{_HOME}.outputs:outputs",
        (Option("verify", "--verify", kind=FLAG),),
        (JOB,),
    ),
    Command(
        "jobs",
        "replay",
        f"{_HOME}.replay:replay",
        (
            Option("name", "--name", metavar="NAME"),
            Option("outputs", "--output", metavar="NAME=PATH", many=True),
            Option("detach", "-d", "--detach", kind=FLAG),
        ),
        (JOB,),
    ),
    Command(
        "jobs",
        "diff",
        f"{_HOME}.diff:diff",
        (),
        (JOB, Argument("other", "OTHER", completes="jobs")),
    ),
    Command("jobs", "why", f"{_HOME}.why:why", (), (JOB,)),
    Command("jobs", "stop", f"{_HOME}.stop:stop", (Option("wait", "--wait", kind=FLAG),), (JOBS,)),
    Command(
        "jobs",
        "rm",
        f"{_HOME}.rm:rm",
        (Option("stop", "--stop", kind=FLAG), Option("yes", "-y", "--yes", kind=FLAG)),
        (JOBS,),
    ),
    Command(
        "jobs",
        "drill",
        f"{_HOME}.drill:drill",
        (
            Option("file", "-f", "--file", metavar="FILE"),
            Option("kills", "--kills", kind=NUMBER, metavar="N", bounds=(1, 50)),
            Option("seed", "--seed", kind=NUMBER, metavar="N"),
            Option("flavor", "--flavor", metavar="ID"),
        ),
        (Argument("job", "JOB", least=0, completes="jobs"),),
    ),
    Command("jobs", "flavors", f"{_HOME}.flavors:flavors"),
    Command(
        "access",
        "key add",
        f"{_HOME}.key:add",
        (Option("name", "--name", metavar="NAME"),),
        (Argument("file", "FILE", least=0),),
    ),
    Command("access", "key ls", f"{_HOME}.key:ls"),
    Command(
        "access",
        "ssh",
        f"{_HOME}.ssh:ssh",
        (_TASK,),
        (Argument("words", "NOTEBOOK|JOB [-- COMMAND...]", most=None),),
    ),
    Command(
        "access",
        "code",
        f"{_HOME}.ssh:code",
        (_TASK, Option("print_only", "--print", kind=FLAG)),
        (Argument("name", "NOTEBOOK|JOB"),),
    ),
    Command(
        "access",
        "port",
        f"{_HOME}.ssh:port",
        (_TASK,),
        (Argument("words", "NOTEBOOK|JOB PORT...", least=2, most=None),),
    ),
    Command("access", "key rm", f"{_HOME}.key:rm", (), (Argument("names", "KEY...", most=None),)),
    Command(
        "data",
        "obs ls",
        f"{_HOME}.obs.listing:ls",
        (_RECURSIVE, _ENDPOINT),
        (Argument("place", "PLACE", least=0),),
    ),
    Command("data", "obs cp", f"{_HOME}.obs.copying:cp", (_RECURSIVE, *_TRANSFER), (_PLACES,)),
    Command(
        "data",
        "obs sync",
        f"{_HOME}.obs.copying:sync",
        (
            Option("delete", "--delete", kind=FLAG),
            Option("checksum", "--checksum", kind=FLAG),
            *_TRANSFER,
        ),
        (_PLACES,),
    ),
    Command("data", "obs mv", f"{_HOME}.obs.copying:mv", (_RECURSIVE, *_TRANSFER), (_PLACES,)),
    Command(
        "data",
        "obs rm",
        f"{_HOME}.obs.listing:rm",
        (_RECURSIVE, Option("yes", "-y", "--yes", kind=FLAG), _DRY_RUN, _ENDPOINT),
        (_PLACE,),
    ),
    Command("data", "obs du", f"{_HOME}.obs.listing:du", (_ENDPOINT,), (_PLACE,)),
    Command("data", "obs mb", f"{_HOME}.obs.listing:mb", (_ENDPOINT,), (_PLACE,)),
    Command(
        "data",
        "obs presign",
        f"{_HOME}.obs.listing:presign",
        (
            Option("expires", "--expires", metavar="TIME"),
            Option("put", "--put", kind=FLAG),
            _ENDPOINT,
        ),
        (_PLACE,),
    ),
    Command("data", "cache ls", f"{_HOME}.cache:ls"),
    Command(
        "data",
        "cache rm",
        f"{_HOME}.cache:rm",
        (),
        (Argument("digests", "DIGEST...", most=None),),
    ),
    Command("data", "cache gc", f"{_HOME}.cache:gc", (Option("to", "--to", metavar="SIZE"),)),
    Command(
        "server",
        "up",
        f"{_HOME}.up:up",
        (
            Option("host", "--host", metavar="ADDRESS"),
            Option("port", "--port", kind=NUMBER, metavar="N", bounds=(0, 65_535)),
        ),
    ),
    Command("server", "down", f"{_HOME}.down:down"),
    Command("server", "status", f"{_HOME}.status:status"),
    Command(
        "server",
        "serve",
        f"{_HOME}.serve:serve",
        (
            Option("host", "--host", metavar="ADDRESS"),
            Option("port", "--port", kind=NUMBER, metavar="N", bounds=(0, 65_535)),
            Option("ready_file", "--ready-file", metavar="FILE"),
            Option("tls_cert", "--tls-cert", metavar="FILE"),
            Option("tls_key", "--tls-key", metavar="FILE"),
            Option("insecure_bind", "--insecure-bind", kind=FLAG),
            Option("default_environment", "--default-environment", metavar="DIR"),
            Option(
                "log_level",
                "--log-level",
                metavar="debug|info|warning|error",
                choices=("debug", "info", "warning", "error"),
            ),
        ),
    ),
    Command(
        "server",
        "backup",
        f"{_HOME}.backup:backup",
        (
            Option("objects", "--objects", kind=FLAG),
            Option("without_key", "--without-key", kind=FLAG),
        ),
        (Argument("dest", "DEST"),),
    ),
    Command(
        "server",
        "restore",
        f"{_HOME}.backup:restore",
        (Option("force", "--force", kind=FLAG),),
        (Argument("source", "BACKUP"),),
    ),
    Command(
        "images",
        "image explain",
        f"{_HOME}.image:explain",
        (
            Option("torch", "--torch", metavar="VERSION"),
            Option("cuda", "--cuda", metavar="TAG"),
            Option("gpus", "--gpu", metavar="MODEL", many=True),
            Option("driver", "--driver", metavar="VERSION"),
            Option("python", "--python", metavar="VERSION"),
            Option("glibc", "--glibc", metavar="VERSION"),
            Option("arch", "--arch", metavar="ARCH"),
            Option("channel", "--channel", metavar="pypi|index", choices=("pypi", "index")),
        ),
    ),
    Command(
        "images",
        "image matrix",
        f"{_HOME}.image_matrix:matrix",
        (Option("index_url", "--index-url", metavar="URL"),),
        (Argument("action", "show|refresh", choices=("show", "refresh")),),
    ),
    Command("images", "image ls", f"{_HOME}.images:ls", (Option("ready", "--ready", kind=FLAG),)),
    Command(
        "images",
        "image show",
        f"{_HOME}.images:show",
        (Option("verify", "--verify", kind=FLAG),),
        (IMAGE,),
    ),
    Command("images", "image realise", f"{_HOME}.images:realise", (), (IMAGE,)),
    Command(
        "images",
        "image rm",
        f"{_HOME}.images:rm",
        (),
        (Argument("images_", "IMAGE...", most=None),),
    ),
    Command(
        "images",
        "image gc",
        f"{_HOME}.images:gc",
        (
            Option("unused_for", "--unused-for", metavar="TIME"),
            Option("budget", "--budget", metavar="SIZE"),
            Option("dry_run", "--dry-run", kind=FLAG),
        ),
    ),
    Command(
        "images",
        "image register",
        f"{_HOME}.image_server:register",
        (Option("description", "--description", metavar="TEXT"),),
        (Argument("name", "NAME"), Argument("lock", "LOCK")),
    ),
    Command(
        "images",
        "image freeze",
        f"{_HOME}.image_server:freeze",
        (
            Option("out", "-o", "--out", metavar="DIR"),
            Option("without", "--without", metavar="NAME", many=True),
            Option("task", "--task", metavar="TASK"),
            Option("description", "--description", metavar="TEXT"),
        ),
        (JOB, Argument("name", "NAME")),
    ),
    Command(
        "images",
        "image lock",
        f"{_HOME}.images:lock",
        (
            Option("backend", "--backend", metavar="TAG"),
            Option("out", "-o", "--out", metavar="FILE"),
        ),
        (Argument("definition", "DEFINITION"),),
    ),
    Command(
        "images",
        "image verify",
        f"{_HOME}.image_verify:verify",
        (Option("flavor", "--flavor", metavar="FLAVOR"),),
        (IMAGE,),
    ),
    Command(
        "images",
        "image build",
        f"{_HOME}.image_build:build",
        (
            Option("base", "--base", metavar="REFERENCE"),
            Option("apt_sources", "--apt-sources", choices=("snapshot", "base")),
            Option("fresh", "--fresh", kind=FLAG),
        ),
        (IMAGE,),
    ),
    Command(
        "images",
        "image push",
        f"{_HOME}.image_build:push",
        (Option("insecure", "--insecure", kind=FLAG),),
        (IMAGE, Argument("reference", "REFERENCE")),
    ),
    Command(
        "images", "image save", f"{_HOME}.image_build:save", (), (IMAGE, Argument("file", "FILE"))
    ),
    Command("images", "image load", f"{_HOME}.image_build:load", (), (Argument("file", "FILE"),)),
    Command(
        "images",
        "image sbom",
        f"{_HOME}.image_build:sbom",
        (Option("out", "-o", "--out", metavar="FILE"),),
        (IMAGE,),
    ),
    Command("machine", "doctor", f"{_HOME}.doctor:doctor"),
    Command("machine", "config", f"{_HOME}.config:config"),
    Command(
        "machine",
        "completion",
        f"{_HOME}.completion:completion",
        (),
        (Argument("shell", "SHELL", choices=("bash", "zsh", "fish")),),
    ),
    *NOTEBOOK_COMMANDS,
)

GROUPS = ("jobs", "notebooks", "access", "data", "server", "images", "machine")

FAMILIES = tuple(dict.fromkeys(one.name.split()[0] for one in COMMANDS if " " in one.name))
"""First words that several commands share."""


def command(name: str) -> Command | None:
    """The command of that name."""
    return next((one for one in COMMANDS if one.name == name), None)


def begun(words: list[str]) -> tuple[Command | None, list[str]]:
    """The command with whose name `words` begin, and what follows it."""
    length = 2 if words and words[0] in FAMILIES else 1
    return command(" ".join(words[:length])), words[length:]
