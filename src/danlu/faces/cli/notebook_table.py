"""The commands about notebooks."""

from __future__ import annotations

from danlu.faces.cli.grammar import FLAG, NUMBER, Argument, Command, Option

_HOME = "danlu.faces.cli.notebook"
_NOTEBOOK = Argument("notebook", "NOTEBOOK")
_LEASE = Option("lease", "--lease", metavar="TIME|off")
_IDLE = Option("idle", "--idle", metavar="TIME|off|default")
_NO_WAIT = Option("detach", "-d", "--detach", kind=FLAG)
_FLAVOR = Option("flavor", "--flavor", metavar="ID")
_IMAGE = Option("image", "--image", metavar="IMAGE")
_HOME_SIZE = Option("home", "--home", kind=NUMBER, metavar="GIB", bounds=(1, 1 << 20))
_ALLOW = Option("allow_ip", "--allow-ip", metavar="ADDRESS|any", many=True)

NOTEBOOK_COMMANDS: tuple[Command, ...] = (
    Command(
        "notebooks",
        "notebook create",
        f"{_HOME}:create",
        (
            _FLAVOR,
            _IMAGE,
            _LEASE,
            _IDLE,
            _HOME_SIZE,
            Option("data_urls", "--data-url", metavar="URL[=PATH]", many=True),
            Option("env", "-e", "--env", metavar="NAME=VALUE", many=True),
            Option("description", "--description", metavar="TEXT"),
            Option("ssh", "--ssh", kind=FLAG),
            _ALLOW,
            _NO_WAIT,
        ),
        (Argument("name", "NAME"),),
    ),
    Command("notebooks", "notebook ls", f"{_HOME}:ls"),
    Command("notebooks", "notebook show", f"{_HOME}:show", (), (_NOTEBOOK,)),
    Command(
        "notebooks",
        "notebook open",
        "danlu.faces.cli.notebook_open:run",
        (Option("print_only", "--print", kind=FLAG),),
        (_NOTEBOOK,),
    ),
    Command("notebooks", "notebook start", f"{_HOME}:start", (_NO_WAIT,), (_NOTEBOOK,)),
    Command("notebooks", "notebook stop", f"{_HOME}:stop", (_NO_WAIT,), (_NOTEBOOK,)),
    Command(
        "notebooks",
        "notebook restart",
        f"{_HOME}:restart",
        (_FLAVOR, _IMAGE, _NO_WAIT),
        (_NOTEBOOK,),
    ),
    Command(
        "notebooks",
        "notebook update",
        f"{_HOME}:update",
        (
            Option("name", "--name", metavar="NAME"),
            _FLAVOR,
            _IMAGE,
            _HOME_SIZE,
            _IDLE,
            Option("description", "--description", metavar="TEXT"),
            _ALLOW,
        ),
        (_NOTEBOOK,),
    ),
    Command(
        "notebooks",
        "notebook renew",
        f"{_HOME}:renew",
        (_IDLE,),
        (_NOTEBOOK, Argument("lease", "TIME|off", least=0)),
    ),
    Command(
        "notebooks",
        "notebook hold",
        f"{_HOME}:hold",
        (
            Option("until_pid", "--until-pid", kind=NUMBER, metavar="PID", bounds=(1, 2**31 - 1)),
            Option("why", "--why", metavar="TEXT"),
            Option("release", "--release", kind=FLAG),
        ),
        (_NOTEBOOK, Argument("time", "TIME", least=0)),
    ),
    Command(
        "notebooks",
        "notebook save",
        "danlu.faces.cli.image_server:save",
        (
            Option("out", "-o", "--out", metavar="DIR"),
            Option("without", "--without", metavar="NAME", many=True),
            Option("description", "--description", metavar="TEXT"),
        ),
        (_NOTEBOOK, Argument("name", "NAME")),
    ),
    Command("notebooks", "notebook events", f"{_HOME}:events", (), (_NOTEBOOK,)),
    Command(
        "notebooks",
        "notebook rm",
        f"{_HOME}:rm",
        (Option("yes", "-y", "--yes", kind=FLAG), _NO_WAIT),
        (_NOTEBOOK,),
    ),
)
