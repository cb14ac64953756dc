"""The server's settings: defaults < file < environment (`DANLU_*`) < flags.

An unknown key stops the start, wherever it stands: a misspelt setting that is silently ignored
is worse than a server that does not come up.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from danlu.model import limits
from danlu.model.errors import Invalid
from danlu.model.flavor import Flavor
from danlu.model.flavor_table import flavors_of

PREFIX = "DANLU_"
FILE = "danlu.toml"
CLIENT_VARIABLES = frozenset(
    {"SERVER", "ACCESS_KEY", "SECRET_KEY", "LANG", "JOB_ID", "ATTEMPT", "STOP_FILE", "DEBUG"}
    | {"CRASH_POINTS", "OBS_ENDPOINT", "OBS_REGION", "OBS_ACCESS_KEY", "OBS_SECRET_KEY"}
)
"""`DANLU_*` variables that belong to the command line, to a job or to the kill harness."""


def _setting(default: Any, english: str, chinese: str) -> Any:
    """A field with its meaning in both languages."""
    return field(default=default, metadata={"en": english, "zh": chinese})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of a server."""

    data: Path = _setting(  # noqa: RUF009 - _setting only builds a field
        Path(),
        "the directory of everything the server keeps",
        "服务器全部数据所在的目录",
    )
    host: str = _setting(
        "127.0.0.1",
        "the address to listen on; another than loopback needs TLS or insecure_bind",
        "监听地址；非回环地址需要 TLS 或 insecure_bind",
    )
    port: int = _setting(
        8778, "the TCP port to listen on; 0 takes a free one", "监听端口；0 表示任取空闲端口"
    )
    obs_port: int = _setting(
        -1,
        "the TCP port of the OBS gateway, for clients of OBS and S3; 0 takes a free one, -1 the one"
        " after port, or a free one where that is taken",
        "OBS 网关（供 OBS 与 S3 客户端使用）的监听端口；0 表示任取空闲端口，"
        "-1 表示 port 的下一个端口，被占用时任取空闲端口",
    )
    ssh_port: int = _setting(
        -1,
        "the TCP port of SSH to notebooks; 0 takes a free one, -1 the one after the OBS gateway's,"
        " or a free one where that is taken, -2 is no SSH (needs the extra danlu[notebook])",
        "通过 SSH 访问 Notebook 的监听端口；0 表示任取空闲端口，-1 表示 OBS 网关端口的下一个端口"
        "（被占用时任取空闲端口），-2 表示关闭（需要安装 danlu[notebook]）",
    )
    ready_file: str = _setting(
        "",
        "where to write address and first access key as JSON once ready (default: server.json"
        " in the data directory)",
        "就绪后以 JSON 写入地址和首个访问密钥的文件（默认为数据目录下的 server.json）",
    )
    tls_cert: str = _setting("", "PEM file of the TLS certificate chain", "TLS 证书链 PEM 文件")
    tls_key: str = _setting("", "PEM file of the TLS private key", "TLS 私钥 PEM 文件")
    insecure_bind: bool = _setting(
        False,
        "listen beyond loopback without TLS, because a proxy in front does TLS",
        "在没有 TLS 的情况下监听非回环地址（由前置代理负责 TLS）",
    )
    host_names: tuple[str, ...] = _setting(
        (),
        "host names under which clients reach the server, beside loopback's",
        "除回环名称外客户端访问服务器所用的主机名",
    )
    notebook_domain: str = _setting(
        "",
        "the domain of notebooks' names, nb-….DOMAIN, all leading here; not the console's"
        " (scheme://domain:port behind a proxy; default: localhost)",
        "Notebook 所用的域名（nb-….域名 均须指向此处；可写作 协议://域名:端口；默认 localhost）",
    )
    region: str = _setting(
        "danlu-local", "the region name that clients use", "客户端使用的区域名称"
    )
    database: str = _setting(
        "",
        "where records are kept: empty = SQLite in the data directory, or postgresql://…",
        "记录的存放位置：留空表示数据目录中的 SQLite，或 postgresql://…",
    )
    objects: str = _setting(
        "folder",
        "where objects are kept: folder (in the data directory) or s3 (a server: s3_endpoint)",
        "对象的存放位置：folder（数据目录中）或 s3（由 s3_endpoint 指定的服务器）",
    )
    s3_endpoint: str = _setting(
        "",
        "the address of the S3 server that keeps the objects: http://host:port or https://host",
        "保存对象的 S3 服务器地址：http://主机:端口 或 https://主机",
    )
    s3_region: str = _setting(
        "us-east-1",
        "the region by which requests to the S3 server are signed",
        "对 S3 服务器请求签名所用的区域",
    )
    s3_keys_file: str = _setting(
        "",
        "TOML file with access_key and secret_key (and token) for the S3 server; only its owner may"
        " read it",
        "含 S3 服务器 access_key 和 secret_key（及 token）的 TOML 文件；仅属主可读",
    )
    s3_buckets: tuple[str, ...] = _setting(
        (),
        "names that buckets have on the S3 server, as ours=theirs; others there are not touched"
        " then (default: the same names)",
        "桶在 S3 服务器上的名称，写作 本地名=远端名；此时不触碰其他桶（默认同名）",
    )
    directories: tuple[str, ...] = _setting(
        (),
        "existing directories as buckets, nothing copied: name=/path to read, name=/path:rw to"
        " write too; links in them are not followed",
        "将现有目录登记为桶（不复制）：桶名=/路径 为只读，桶名=/路径:rw 可写；其中的链接不会被跟随",
    )
    engine: str = _setting(
        "process",
        "where tasks run: process (as processes of this machine) or container (podman or Docker)",
        "任务的执行引擎：process（作为本机进程）或 container（podman 或 Docker 容器）",
    )
    container_socket: str = _setting(
        "",
        "the unix socket at which podman or Docker listens (default: the user's own podman or"
        " Docker, then /run/podman/podman.sock, then /var/run/docker.sock)",
        "podman 或 Docker 监听的 unix 套接字（默认依次为当前用户自己的 podman 或 Docker、"
        "/run/podman/podman.sock、/var/run/docker.sock）",
    )
    container_image: str = _setting(
        "",
        "the image of jobs that name none (engine.image_url), on the container engine",
        "容器引擎上未指定镜像（engine.image_url）的作业所用的镜像",
    )
    default_environment: str = _setting(
        "",
        "directory of the Python environment in which jobs run that name none (default:"
        " environments/default in the data directory, or the server's own Python)",
        "未指定环境的作业所用的 Python 环境目录（默认为数据目录下的 environments/default，"
        "否则为服务器自身的 Python）",
    )
    default_image: str = _setting(
        "",
        "the image (name or id) of jobs that name neither image nor environment, on the process"
        " engine (default: they run in default_environment)",
        "进程引擎上既未指定镜像也未指定环境的作业所用的镜像（名称或 ID；默认在"
        " default_environment 中运行）",
    )
    image_unused_days: int = _setting(
        30,
        "after how many days without use the server removes an image's environment, and of the"
        " cache what only that had; 0 = never",
        "镜像环境多少天未使用后由服务器移除（连同仅属于它的缓存）；0 表示从不",
    )
    image_budget_gib: int = _setting(
        0,
        "how many GiB images and their cache may take before the server removes the environments"
        " that were not used for longest; 0 = any number",
        "镜像及其缓存最多占用多少 GiB，超出时服务器从最久未用的环境开始移除；0 表示不限",
    )
    images: str = _setting(
        "",
        "the directory of images: their environments, and the cache these are made from, on one"
        " file system (default: images in the data directory)",
        "镜像目录：镜像的环境及其缓存，须位于同一文件系统（默认为数据目录下的 images）",
    )
    image_base: str = _setting(
        "",
        "the base of container images that are built here (default: as their definition says)",
        "在本机构建容器镜像所用的基础镜像（默认取自镜像定义）",
    )
    image_apt_sources: str = _setting(
        "snapshot",
        "where Debian packages of container images come from: snapshot (Debian's archive as it was"
        " at the definition's time) or base (what the base image names)",
        "容器镜像中 Debian 软件包的来源：snapshot（定义所记时间的 Debian 归档）或 base"
        "（基础镜像自带的软件源）",
    )
    image_verify: str = _setting(
        "once",
        "when images are verified: once (before the first program of one on a flavor) or off",
        "作业程序启动前何时检查镜像：once（首次用于某规格之前）或 off（不检查）",
    )
    image_builder: str = _setting(
        "",
        "what builds container images: podman or docker (default: the first that is installed)",
        "构建容器镜像的程序：podman 或 docker（默认取已安装的第一个）",
    )
    default_flavor: str = _setting(
        "",
        "the flavor of jobs that name none (default: by the machine)",
        "未指定规格的作业所用的规格",
    )
    flavors: tuple[Flavor, ...] = _setting(
        (),
        'further flavors: tables [flavors."id"] with cpus, memory_gib, gpus, gpu_model,'
        " price_per_hour (file only)",
        '附加规格：[flavors."id"] 表，含 cpus、memory_gib、gpus、gpu_model、price_per_hour'
        "（仅限文件）",
    )
    allow_local_paths: bool = _setting(
        True,
        "take paths of the server's own machine (file://…) as inputs and outputs",
        "允许将服务器本机路径（file://…）作为输入和输出",
    )
    isolation: str = _setting(
        "auto",
        "what keeps tasks from what is not theirs: auto (all that the machine has), required (all,"
        " or the job is refused) or off",
        "任务与他人内容的隔离程度：auto（尽机器所能）、required（缺一即拒绝作业）或 off（不隔离）",
    )
    readable_paths: tuple[str, ...] = _setting(
        (),
        "directories that every task may read, wherever they lie (in a home, for example)",
        "所有任务都可读取的目录，无论位于何处（例如主目录中）",
    )
    writable_paths: tuple[str, ...] = _setting(
        (),
        "directories that every task may read and write, wherever they lie",
        "所有任务都可读写的目录，无论位于何处",
    )
    max_queued: int = _setting(
        100_000,
        "how many jobs may wait before submits are refused",
        "排队作业数上限，超出则拒绝提交",
    )
    log_limit_mib: int = _setting(
        1024,
        "how many MiB of each task's log are kept where the job does not say (danlu.log_limit_mib):"
        " its beginning and its end, half each",
        "作业未指定（danlu.log_limit_mib）时，每个任务的日志保留多少 MiB：开头与结尾各一半",
    )
    allow_network_disk: bool = _setting(
        False,
        "keep the SQLite database on a network file system or FUSE all the same; such a disk can"
        " damage it",
        "仍允许将 SQLite 数据库放在网络文件系统或 FUSE 上；此类磁盘可能损坏数据库",
    )
    reserve_mib: int = _setting(
        64,
        "MiB of the database's disk that are kept back so that the ends of jobs can be recorded"
        " when the disk is full; 0 keeps nothing (of a small disk at most a sixteenth is taken)",
        "在数据库所在磁盘上预留的 MiB，用于磁盘写满时仍能记录作业的结束；0 表示不预留"
        "（小磁盘最多占其十六分之一）",
    )
    hang_after_s: int = _setting(
        1800,
        "seconds without a byte of log, without I/O and with flat use of GPU or CPU after which a"
        " task is taken to hang where the job does not say (danlu.hang_after_s); 0 = never",
        "作业未指定（danlu.hang_after_s）时，任务无日志、无读写且 GPU 或 CPU 占用不变达多少秒后视为"
        "卡死；0 表示不检测",
    )
    platform_retries: int = _setting(
        3,
        "how many attempts in a row a job may lose to the platform (a killed agent, a restarted"
        " machine) before it is given up; such attempts do not count against its own retries",
        "因平台原因（代理进程被杀、机器重启等）连续中断时，作业最多自动重试的次数；不计入作业自身的重试"
        "次数",
    )
    notebook_idle_s: int = _setting(
        3600,
        "seconds without activity after which a notebook is stopped whose user said nothing"
        " else and that has no lease; 0 = never",
        "用户未另行设置且无租期的 Notebook 在无活动多少秒后停止；0 表示不停止",
    )
    notebook_max_idle_s: int = _setting(
        0,
        "the most that users may choose for a notebook's idle stop, which they cannot switch off"
        " then; 0 = as they like",
        "用户可为 Notebook 空闲停止设置的最大秒数，设置后不可关闭；0 表示不限制",
    )
    notebook_max_run_h: int = _setting(
        0,
        "hours after which every notebook is stopped, whatever happens in it; 0 = never",
        "Notebook 运行多少小时后一律停止，无论是否在使用；0 表示不限制",
    )
    store_patience_s: int = _setting(
        600,
        "how many seconds a job whose program has ended waits for a store that does not answer;"
        " then it fails, and its outputs stay on disk",
        "程序结束后，存储无应答时作业最多等待的秒数；超时则作业失败，输出保留在磁盘上",
    )
    dataset_cache_gib: int = _setting(
        50,
        "how many GiB of data sets stay on a machine for the next job that reads them, in datasets"
        " in the data directory; what was used longest ago goes first; 0 = none",
        "每台机器为后续作业保留的数据集大小上限（GiB），位于数据目录下的 datasets；"
        "最久未用的先清除；0 表示不保留",
    )
    log_level: str = _setting(
        "info", "how much the server logs: debug, info, warning, error", "服务器日志级别"
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings and where each came from: default, file, environment or flag."""

    settings: Settings
    sources: Mapping[str, str]


def load(
    data: Path,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """Read the settings of the server whose data lies at `data`.

    `flags` are values given on the command line (None = not given). Raises Invalid for an
    unknown key or a value of the wrong kind, naming the key and where it stands.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    layers = [
        (f"{data / FILE}", _from_file(data / FILE)),
        ("the environment", _from_environment(environ)),
        ("the command line", {k: v for k, v in (flags or {}).items() if v is not None}),
    ]
    for (source, layer), kind in zip(layers, ("file", "environment", "flag"), strict=True):
        for key, value in layer.items():
            values[key] = _checked(key, value, source)
            sources[key] = kind
    values["data"] = data
    sources.setdefault("data", "flag")
    return Loaded(
        Settings(**values),
        {item.name: sources.get(item.name, "default") for item in fields(Settings)},
    )


def check_environment(settings: Settings) -> None:
    """Invalid where the environment of jobs that name none is not there: every job would fail."""
    named = settings.default_environment
    if named and not (Path(named) / "bin" / "python").exists():
        raise Invalid(
            "setting-value",
            key="default_environment",
            source="the settings",
            value=named,
            expected="the directory of a Python environment, with bin/python in it",
        )


def describe(language: str = "en") -> dict[str, tuple[str, str]]:
    """Every setting: its default as text, and its meaning."""
    return {
        item.name: (plain(item.default), item.metadata["zh" if language == "zh" else "en"])
        for item in fields(Settings)
    }


def plain(value: object) -> str:
    """A setting's value as text for people."""
    if isinstance(value, tuple):
        return ", ".join(part.id if isinstance(part, Flavor) else str(part) for part in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value == Path() else str(value)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Invalid("setting-file", path=path, detail=error) from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(PREFIX):
            continue
        key = name.removeprefix(PREFIX)
        if key in CLIENT_VARIABLES or key == "DATA":
            continue
        found[key.lower()] = value
    return found


def _checked(key: str, value: Any, source: str) -> Any:
    known = {item.name: item for item in fields(Settings)}
    if key not in known:
        near = difflib.get_close_matches(key, known, 1)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        raise Invalid("setting-unknown", key=key, source=source, hint=hint)
    default = known[key].default
    if key == "flavors":
        return flavors_of(value, source)
    if isinstance(default, bool):
        return _boolean(key, value, source)
    if isinstance(default, int):
        return _integer(key, value, source)
    if isinstance(default, tuple):
        parts = value.split(",") if isinstance(value, str) else list(value)
        return tuple(str(part).strip() for part in parts if str(part).strip())
    if isinstance(default, Path):
        return Path(value)
    if not isinstance(value, str):
        raise Invalid("setting-value", key=key, source=source, value=value, expected="a text")
    return _choice(key, value, source)


def _choice(key: str, value: str, source: str) -> str:
    choices = {
        "objects": ("folder", "s3"),
        "isolation": ("auto", "required", "off"),
        "log_level": ("debug", "info", "warning", "error"),
        "image_apt_sources": ("snapshot", "base"),
        "image_verify": ("once", "off"),
        "image_builder": ("", "podman", "docker"),
    }.get(key)
    if choices and value not in choices:
        expected = f"one of {', '.join(choices)}"
        raise Invalid("setting-value", key=key, source=source, value=value, expected=expected)
    return value


def _boolean(key: str, value: Any, source: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words:
        raise Invalid(
            "setting-value", key=key, source=source, value=value, expected="true or false"
        )
    return words[str(value).lower()]


def _integer(key: str, value: Any, source: str) -> int:
    bounds = {
        "port": (0, 65_535),
        "obs_port": (-1, 65_535),
        "ssh_port": (-2, 65_535),
        "max_queued": (1, 10_000_000),
        "log_limit_mib": (1, limits.LOG_MIB),
        "store_patience_s": (0, 7 * 24 * 3600),
        "dataset_cache_gib": (0, 1 << 30),
        "image_unused_days": (0, 36_500),
        "image_budget_gib": (0, 1 << 30),
        "platform_retries": (0, 100),
        "hang_after_s": (0, 31_536_000),
        "notebook_idle_s": (0, 31_536_000),
        "notebook_max_idle_s": (0, 31_536_000),
        "notebook_max_run_h": (0, 8760),
        "reserve_mib": (0, 1 << 20),
    }
    low, high = bounds.get(key, (0, 2**62))
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if isinstance(value, bool) or not low <= number <= high:
        expected = f"a whole number from {low} to {high}"
        raise Invalid("setting-value", key=key, source=source, value=value, expected=expected)
    return number
