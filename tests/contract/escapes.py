"""A program that tries to get out: each attempt by name, with what came of it. Run with the paths
and pids of what it must not reach as one JSON object in ESCAPE; prints a JSON object. TEXT is tried
on every engine; IN_A_CONTAINER tries that and what only containers promise to keep from programs.
"""

_ATTEMPTS = r"""
import ctypes, json, os, platform, signal, socket, stat

aim = json.loads(os.environ["ESCAPE"])
libc = ctypes.CDLL(None, use_errno=True)
victim = aim["victim"]

def call(name, *arguments):
    result = getattr(libc, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

def read(path):
    with open(path, "rb") as file:
        if not file.read(1):
            raise OSError("empty")

def write(path, text="x"):
    with open(path, "w") as file:
        file.write(text)

def through_a_link():
    link = os.environ["MA_CACHE_DIR"] + "/link"
    os.symlink(aim["records"], link)
    read(link)

def abstract():
    with socket.socket(socket.AF_UNIX) as door:
        door.connect("\0" + aim["socket"])

def trace():
    # PTRACE_SEIZE does not stop its victim, and ends with this program.
    call("ptrace", 0x4206, victim, None, None)

def memory():
    with open(f"/proc/{victim}/mem", "rb") as file:
        file.fileno()

def memory_of_another():
    data = ctypes.create_string_buffer(8)
    class Part(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    local = Part(ctypes.cast(data, ctypes.c_void_p), 8)
    remote = Part(aim["address"], 8)
    call("process_vm_readv", victim, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)

def leave_group():
    write(aim["group"] + "/cgroup.procs", "0")

def make_disk():
    os.mknod(os.environ["MA_CACHE_DIR"] + "/disk", 0o60600, os.makedev(1, 0))

def mount():
    place = os.environ["MA_CACHE_DIR"].encode() + b"/mount"
    os.mkdir(place)
    call("mount", b"none", place, b"tmpfs", 0, None)
    call("umount2", place, 0)

def by_a_handle():
    # What a path of this program's own does not lead to is found by its number on the disk.
    class Handle(ctypes.Structure):
        _fields_ = [("size", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_char * 128)]
    handle, mount = Handle(128), ctypes.c_int()
    place = os.environ["MA_CACHE_DIR"].encode()
    call("name_to_handle_at", -100, place, ctypes.byref(handle), ctypes.byref(mount), 0)
    root = os.open(place, os.O_RDONLY)
    os.close(call("open_by_handle_at", root, ctypes.byref(handle), os.O_RDONLY))

attempts = {
    "read the records": lambda: read(aim["records"]),
    "read the records through a link": through_a_link,
    "list the data": lambda: os.listdir(aim["data"]),
    "read another task's plan": lambda: read(aim["other"] + "/plan.json"),
    "read another task's work": lambda: read(aim["other"] + "/work/cache/secret"),
    "write to another task": lambda: write(aim["other"] + "/work/cache/mine"),
    "read its own plan": lambda: read(aim["own"] + "/plan.json"),
    "write its own exit record": lambda: write(aim["own"] + "/exit.planted"),
    "read a key": lambda: read(aim["home"] + "/.ssh/id_ed25519"),
    "read credentials": lambda: read(aim["home"] + "/.aws/credentials"),
    "read settings": lambda: read(aim["home"] + "/.config/tool/token"),
    "read passwords": lambda: read(aim["home"] + "/.netrc"),
    "write into the home": lambda: write(aim["home"] + "/.bashrc"),
    "write elsewhere": lambda: write(aim["data"] + "/planted"),
    "signal a process": lambda: os.kill(victim, 0),
    "signal the server": lambda: os.kill(aim["server"], 0),
    "trace a process": trace,
    "open its memory": memory,
    "read its memory": memory_of_another,
    "read its environment": lambda: read(f"/proc/{victim}/environ"),
    "enter its root": lambda: os.listdir(f"/proc/{victim}/root/etc"),
    "connect to an abstract socket": abstract,
}
if os.geteuid() == 0:
    attempts.update({
        "read the shadow file": lambda: read("/etc/shadow"),
        "write to the system": lambda: write("/etc/danlu-escape"),
        "leave its control group": leave_group,
        "make a disk": make_disk,
        "mount": mount,
        "open a file by its handle": by_a_handle,
        "change the root": lambda: os.chroot("/"),
        "set the host name": lambda: call("sethostname", aim["name"].encode(), len(aim["name"])),
    })
"""
_CONTAINED = r"""
def open_for_writing(path):
    os.close(os.open(path, os.O_WRONLY))

def become_root():
    os.setuid(0)

def hear_the_network():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()

def use_raw_packets():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()

def see_a_disk():
    if not any(stat.S_ISBLK(os.lstat(f"/dev/{name}").st_mode) for name in os.listdir("/dev")):
        raise OSError("there is none")

def end_its_keeper():
    # The kernel gives the first process of a namespace no signal from inside that ends it.
    os.kill(1, signal.SIGKILL)
    try:
        os.kill(1, 0)
    except ProcessLookupError:
        return
    raise OSError("it lives")

def system_call(number):
    # With nonsense, so that one that gets through does no harm: it then complains of that.
    def attempt():
        result = libc.syscall(number, -1, 0, 0, 0, 0)
        number_of_error = ctypes.get_errno()
        if result < 0 and os.strerror(number_of_error) in (
            "Operation not permitted", "Function not implemented"
        ):
            raise OSError(number_of_error, os.strerror(number_of_error))
    return attempt

attempts.update({
    "open a file by its handle": by_a_handle,
    "become root": become_root,
    "hear the network": hear_the_network,
    "use raw packets": use_raw_packets,
    "see a disk": see_a_disk,
    "end its keeper": end_its_keeper,
    "make a disk": make_disk,
    "mount": mount,
    "change the root": lambda: os.chroot("/"),
    "set the host name": lambda: call("sethostname", aim["name"].encode(), len(aim["name"])),
    "read the shadow file": lambda: read("/etc/shadow"),
    "read the kernel's memory": lambda: read("/proc/kcore"),
    "read the kernel's keys": lambda: read("/proc/keys"),
})
for path in (
    "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
    "/proc/sys/vm/overcommit_memory", "/proc/irq/default_smp_affinity",
    "/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/pids.max",
    "/sys/fs/cgroup/cgroup.procs", "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/loop-control",
    "/run/danlu/start", "/run/danlu/told/notice.json", "/etc/hosts", "/etc/resolv.conf",
    "/run/podman/podman.sock", "/var/run/docker.sock",
):
    attempts[f"write {path}"] = lambda path=path: open_for_writing(path)
if platform.machine() == "x86_64":
    calls = {
        "add_key": 248, "request_key": 249, "bpf": 321, "perf_event_open": 298,
        "userfaultfd": 323, "init_module": 175, "delete_module": 176,
        "kexec_load": 246, "swapon": 167, "reboot": 169, "iopl": 172, "open_by_handle_at": 304,
        "settimeofday": 164, "quotactl": 179, "acct": 163, "pivot_root": 155,
    }
    attempts.update({f"call {name}": system_call(number) for name, number in calls.items()})
"""
_TRY = r"""
found = {}
for name, attempt in attempts.items():
    try:
        attempt()
        found[name] = "done"
    except OSError as error:
        found[name] = error.strerror or str(error)
print(json.dumps(found), flush=True)
"""
TEXT = _ATTEMPTS + _TRY
IN_A_CONTAINER = _ATTEMPTS + _CONTAINED + _TRY
