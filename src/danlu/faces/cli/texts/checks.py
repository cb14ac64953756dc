"""What `danlu doctor` says: names of checks, what was found, and what to do about it."""

from __future__ import annotations

CHECKS: dict[str, tuple[str, str]] = {
    # names
    "name.system": ("system", "系统"),
    "name.python": ("python", "Python"),
    "name.environment": ("job environment", "作业环境"),
    "name.torch": ("torch", "torch"),
    "name.driver": ("NVIDIA driver", "NVIDIA 驱动"),
    "name.cuda": ("driver and CUDA", "驱动与 CUDA"),
    "name.gpus": ("GPUs", "GPU"),
    "name.cpus": ("CPUs", "CPU"),
    "name.memory": ("memory", "内存"),
    "name.limits": ("limits", "资源限制"),
    "name.shm": ("shared memory", "共享内存"),
    "name.data": ("data directory", "数据目录"),
    "name.objects": ("objects", "对象存储"),
    "name.disk": ("disk", "磁盘"),
    "name.datasets": ("data sets", "数据集缓存"),
    "name.clock": ("clock", "时钟"),
    "name.cgroup": ("cgroup", "cgroup"),
    "name.namespaces": ("namespaces", "命名空间"),
    "name.landlock": ("Landlock", "Landlock"),
    "name.containers": ("containers", "容器"),
    "name.runtimes": ("container programs", "容器程序"),
    "name.locale": ("locale", "区域设置"),
    "name.server": ("server", "服务器"),
    "name.port": ("port", "端口"),
    # found
    "plain": ("{found}", "{found}"),
    "system.kernel": ("Linux {release}", "Linux {release}"),
    "system.old": (
        "Linux {release} has no pidfd; the server needs kernel 5.3 or newer",
        "Linux {release} 不支持 pidfd；服务器需要 5.3 或更新的内核",
    ),
    "system.other": (
        "{system}: clients work here, the server needs Linux",
        "{system}：可运行客户端，服务器需要 Linux",
    ),
    "environment.missing": (
        (
            "{path} has no Python; set default_environment, or run: danlu serve --default-environment"
            " DIR"
        ),
        "{path} 中没有 Python；请设置 default_environment，或执行 danlu serve --default-environment DIR",
    ),
    "environment.broken": (
        "{path} does not start: {detail}",
        "{path} 无法启动：{detail}",
    ),
    "torch.missing": (
        (
            "not installed in {path}, where jobs without an image run: name an image that has it"
            " (danlu image ls; danlu run --image pytorch-2.13-cpu), or {path} -m pip install torch"
        ),
        (
            "{path} 中未安装，而未指定镜像的作业在其中运行：请指定带有它的镜像（danlu image ls；"
            "danlu run --image pytorch-2.13-cpu），或执行 {path} -m pip install torch"
        ),
    ),
    "torch.cpu": ("{version}, a CPU build", "{version}，CPU 版"),
    "torch.cuda": ("{version}, built for CUDA {cuda}", "{version}，基于 CUDA {cuda}"),
    "driver.none": ("none, and no NVIDIA GPU was found", "无，也未发现 NVIDIA GPU"),
    "driver.missing": (
        "none, but {count} NVIDIA device(s) are on the bus; install the driver",
        "无，但总线上有 {count} 个 NVIDIA 设备；请安装驱动",
    ),
    "cuda.none": ("not needed: no driver", "不需要：没有驱动"),
    "cuda.fits": (
        "driver {driver} serves CUDA {cuda}",
        "驱动 {driver} 支持 CUDA {cuda}",
    ),
    "cuda.old": (
        (
            "driver {driver} is too old for torch's CUDA {cuda}, which needs {needs} or newer; update"
            " the driver, or install a torch built for an older CUDA"
        ),
        (
            "驱动 {driver} 对 torch 的 CUDA {cuda} 而言过旧，需要 {needs} 或更新；请升级驱动，或安装基于较旧"
            " CUDA 的 torch"
        ),
    ),
    "cuda.cpu-build": (
        (
            "driver {driver} is there, but torch {version} is a CPU build and will not use the GPU;"
            " install a CUDA build"
        ),
        "已有驱动 {driver}，但 torch {version} 是 CPU 版，不会使用 GPU；请安装 CUDA 版",
    ),
    "cuda.no-kernels": (
        (
            "torch {version} for CUDA {cuda} has no kernels for {gpus}, only {has}; take another build:"
            " {fix}"
        ),
        "torch {version}（CUDA {cuda}）没有用于 {gpus} 的内核，只有 {has}；请更换构建：{fix}",
    ),
    "cuda.unavailable": (
        (
            "driver {driver} and CUDA {cuda} fit, yet torch sees no GPU; look at dmesg, and at"
            " CUDA_VISIBLE_DEVICES"
        ),
        "驱动 {driver} 与 CUDA {cuda} 匹配，但 torch 看不到 GPU；请检查 dmesg 和 CUDA_VISIBLE_DEVICES",
    ),
    "cuda.unknown": (
        "driver {driver}; torch could not be asked",
        "驱动 {driver}；无法查询 torch",
    ),
    "gpus.lost": (
        "the driver is there, but no GPU answers: {reason}",
        "驱动已加载，但没有可用的 GPU：{reason}",
    ),
    "gpus.unreachable": (
        "{found}; {count} more do not answer: look at dmesg and nvidia-smi, reset or reseat them",
        "{found}；另有 {count} 个没有响应：请检查 dmesg 和 nvidia-smi，并重置或重新插拔",
    ),
    "gpus.none": ("none; jobs run on CPUs", "无；作业将在 CPU 上运行"),
    "cpus.found": ("{usable} usable of {all}", "共 {all} 个，可用 {usable} 个"),
    "memory.found": ("{total}, {free} available", "共 {total}，可用 {free}"),
    "memory.low": (
        "{total}, only {free} available; end something, or jobs will be killed",
        "共 {total}，仅 {free} 可用；请释放内存，否则作业可能被终止",
    ),
    "limits.found": (
        "{files} open files, {processes} processes",
        "打开文件 {files}，进程 {processes}",
    ),
    "limits.low": (
        "{files} open files, {processes} processes; raise them with ulimit -n 65536 and -u",
        "打开文件 {files}，进程 {processes}；请用 ulimit -n 65536 和 -u 提高",
    ),
    "shm.missing": ("not there; DataLoader workers need it", "不存在；DataLoader 的工作进程需要它"),
    "shm.small": (
        (
            "{size}; DataLoader workers may end with a bus error: in a container give --shm-size=8g,"
            " elsewhere mount -o remount,size=50% /dev/shm"
        ),
        (
            "{size}；DataLoader 的工作进程可能因总线错误退出：容器请加 --shm-size=8g，否则执行"
            " mount -o remount,size=50% /dev/shm"
        ),
    ),
    "data.new": ("{path} will be made", "{path} 将在启动时创建"),
    "data.unwritable": (
        "{path} cannot be written by this user; give another --data",
        "当前用户无法写入 {path}；请更换 --data",
    ),
    "data.open": (
        "{path} can be read by others and holds keys: chmod 700 {path}",
        "{path} 含有密钥但可被他人读取：chmod 700 {path}",
    ),
    "data.network": (
        "{path} lies on {kind}; SQLite may lose data there: choose a local disk",
        "{path} 位于 {kind} 上，SQLite 可能丢失数据；请改用本地磁盘",
    ),
    "objects.folder": ("in the data directory", "位于数据目录"),
    "objects.s3": ("{endpoint} answers", "{endpoint} 有应答"),
    "objects.trouble": ("{detail}", "{detail}"),
    "disk.found": (
        "{free} free of {total}, {inodes} free inodes",
        "共 {total}，空闲 {free}，空闲 inode {inodes}",
    ),
    "disk.low": (
        "{free} free of {total}, {inodes} free inodes; free some space, or choose another --data",
        "共 {total}，空闲 {free}，空闲 inode {inodes}；请释放空间或更换 --data",
    ),
    "datasets.kept": (
        "{count} kept, {size} of at most {limit}",
        "已保留 {count} 个，{size}，上限 {limit}",
    ),
    "datasets.off": (
        "none are kept (dataset_cache_gib is 0)",
        "不保留（dataset_cache_gib 为 0）",
    ),
    "clock.behind": (
        "{now} is before {newest}, when {file} was written; set the clock",
        "{now} 早于 {file} 的写入时间 {newest}；请校准时钟",
    ),
    "cgroup.held": (
        "version {version}: limits on memory, CPU and processes are enforced",
        "第 {version} 版：强制执行内存、CPU 和进程数限制",
    ),
    "cgroup.partly": (
        (
            "version {version}, without {missing}: these limits are reserved, not enforced; hand the"
            " controllers down to the group of the server"
        ),
        "第 {version} 版，缺少 {missing}：这些限制只预留、不强制执行；请将控制器下放给服务器所在的组",
    ),
    "cgroup.closed-v2": (
        (
            "version 2, but none may be made: limits are reserved, not enforced; start the server as"
            " root, or with: systemd-run --user --scope -p Delegate=yes danlu up"
        ),
        (
            "第 2 版，但无权创建：限制只预留、不强制执行；请以 root 启动服务器，或执行："
            "systemd-run --user --scope -p Delegate=yes danlu up"
        ),
    ),
    "cgroup.closed-v1": (
        (
            "version 1, but none may be made: limits are reserved, not enforced; start the server as"
            " root, or have root give it groups of its own"
        ),
        (
            "第 1 版，但无权创建：限制只预留、不强制执行；请以 root 启动服务器，"
            "或由 root 为其分配专用的组"
        ),
    ),
    "cgroup.none": (
        "none is mounted: limits are reserved, not enforced; mount /sys/fs/cgroup",
        "未挂载：限制只预留、不强制执行；请挂载 /sys/fs/cgroup",
    ),
    "namespaces.root": (
        "made by root: tasks have their own view of files and processes",
        "由 root 创建：任务有独立的文件和进程视图",
    ),
    "namespaces.user": (
        "made through user namespaces: tasks have their own view of files and processes",
        "通过用户命名空间创建：任务有独立的文件和进程视图",
    ),
    "namespaces.no": (
        (
            "not allowed ({setting} is {value}): tasks see the machine's processes and get mapped"
            " paths; as root: sysctl -w the other value, or start the server as root"
        ),
        (
            "不允许（{setting} 为 {value}）：任务可看到本机进程，路径为映射路径；请以 root 用 sysctl -w"
            " 改为允许，或以 root 启动服务器"
        ),
    ),
    "namespaces.failed": (
        (
            "cannot be made ({detail}): tasks see the machine's processes and get mapped paths; start"
            " the server as root, or in a container with --cap-add SYS_ADMIN and a seccomp profile"
            " that allows unshare and mount"
        ),
        (
            "无法创建（{detail}）：任务可看到本机进程，路径为映射路径；请以 root 启动服务器；在容器中请使用"
            " --cap-add SYS_ADMIN 以及允许 unshare 和 mount 的 seccomp 配置"
        ),
    ),
    "landlock.all": (
        "version {version}: tasks are kept from other files and processes",
        "版本 {version}：任务与他人的文件和进程隔离",
    ),
    "landlock.files": (
        (
            "version {version}: tasks are kept from other files, but may signal other processes of the"
            " server's user; Linux 6.12, or namespaces, keep them from that"
        ),
        (
            "版本 {version}：任务与他人的文件隔离，但仍可向服务器用户的其他进程发信号；需要 Linux 6.12"
            " 或命名空间"
        ),
    ),
    "landlock.none": (
        (
            "none: tasks may read all that the server's user may; it needs Linux 5.13 and landlock in"
            " the kernel's lsm= list"
        ),
        "无：任务可读取服务器用户能读取的一切；需要 Linux 5.13，且内核参数 lsm= 中包含 landlock",
    ),
    "runtimes.none": (
        "none installed; images are built with podman: apt install podman",
        "未安装；构建镜像需要 podman：apt install podman",
    ),
    "runtimes.holes": (
        (
            "{found}; known holes of these versions: {holes}; update them, unless the distribution has"
            " mended them under its own number (its changelog says so)"
        ),
        (
            "{found}；这些版本的已知漏洞：{holes}；请更新，除非发行版已在其自己的版本号下修复（见其更新日志）"
        ),
    ),
    "containers.unused": (
        "not used: jobs run as processes (engine = process)",
        "未使用：作业作为进程运行（engine = process）",
    ),
    "containers.none": ("{detail}", "{detail}"),
    "containers.held": (
        "{version}: tasks are held to their flavor's memory, processors and processes",
        "{version}：任务的内存、处理器和进程数按规格限制",
    ),
    "containers.partly": (
        (
            "{version} does not hold tasks to: {missing}; it needs the control groups of these (as"
            " root, or delegated to the user: systemctl edit user@.service, Delegate=yes)"
        ),
        (
            "{version} 不限制以下各项：{missing}；需要相应的 cgroup（以 root 运行，或委派给用户："
            "systemctl edit user@.service，Delegate=yes）"
        ),
    ),
    "containers.no-gpus": (
        (
            "{version} cannot give containers a GPU: install nvidia-container-toolkit, then run"
            " nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
        ),
        (
            "{version} 无法向容器提供 GPU：请安装 nvidia-container-toolkit，再执行 nvidia-ctk cdi"
            " generate --output=/etc/cdi/nvidia.yaml"
        ),
    ),
    "containers.fleeting": (
        (
            '{version} ends all containers when its daemon ends; set "live-restore": true in'
            " /etc/docker/daemon.json"
        ),
        (
            "{version} 的守护进程结束时会终止全部容器；请在 /etc/docker/daemon.json 中设置"
            ' "live-restore": true'
        ),
    ),
    "locale.found": ("{encoding}", "{encoding}"),
    "locale.other": (
        "file names are read as {encoding}; set LANG=C.UTF-8",
        "文件名按 {encoding} 解码；请设置 LANG=C.UTF-8",
    ),
    "server.up": ("version {version} at {api}", "版本 {version}，地址 {api}"),
    "server.down": ("not running; danlu up starts it", "未运行；可用 danlu up 启动"),
    "server.silent": (
        "does not answer at {api}: {detail}",
        "{api} 没有响应：{detail}",
    ),
    "server.version": (
        "version {version} at {api}, this program is {own}; restart it: danlu down, danlu up",
        "版本 {version}，地址 {api}，而本程序为 {own}；请重启：danlu down、danlu up",
    ),
    "port.free": ("{port} is free", "{port} 空闲"),
    "port.own": ("{port} is the server's", "{port} 由服务器使用"),
    "port.taken": (
        "{port} is taken by another program; danlu up will take a free one (or give --port)",
        "{port} 被其他程序占用；danlu up 会改用空闲端口（也可用 --port 指定）",
    ),
}
