"""A program that tries to get out: each attempt by name, with what came of it. Run with the paths
and pids of what it must not reach as one JSON object in ESCAPE; prints a JSON object.
"""

TEXT = r"""
import ctypes, json, os, signal, socket

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
        "change the root": lambda: os.chroot("/"),
        "set the host name": lambda: call("sethostname", aim["name"].encode(), len(aim["name"])),
    })

found = {}
for name, attempt in attempts.items():
    try:
        attempt()
        found[name] = "done"
    except OSError as error:
        found[name] = error.strerror or str(error)
print(json.dumps(found), flush=True)
"""
