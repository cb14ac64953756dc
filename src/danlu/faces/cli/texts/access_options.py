"""Help texts of the commands about keys and SSH."""

from __future__ import annotations

ACCESS_OPTIONS: dict[str, tuple[str, str]] = {
    "group.access": ("SSH:", "SSH："),
    "key": ("Your public keys for SSH.", "您的 SSH 公钥。"),
    "key add": (
        (
            "Add a public key to your profile: with its private half you come in over SSH. FILE is a"
            " .pub file, - reads the key from stdin; without FILE the usual one of ~/.ssh is taken."
        ),
        (
            "将公钥加入您的资料，之后可用对应的私钥经 SSH 登录。FILE 为 .pub 文件，- 表示从标准输入"
            "读取；省略时取 ~/.ssh 中的常用公钥。"
        ),
    ),
    "key add.name": (
        "What you call it (default: the key's comment).",
        "密钥名称（默认为其注释）。",
    ),
    "key ls": ("List your public keys.", "列出您的公钥。"),
    "key rm": (
        "Remove public keys, by name or fingerprint. Connections made with them end at once.",
        "按名称或指纹删除公钥。使用它们建立的连接立即断开。",
    ),
    "ssh": (
        (
            "Log in to a notebook, or to a job that was submitted with --ssh, or run a command there,"
            " with OpenSSH's own client. The command is what ssh takes it for:"
            " danlu ssh NAME -- nvidia-smi -L"
        ),
        (
            "用 OpenSSH 客户端登录 Notebook 或以 --ssh 提交的作业，或在其中执行命令；命令的含义与 ssh"
            " 相同：danlu ssh 名称 -- nvidia-smi -L"
        ),
    ),
    "port": (
        (
            "Have ports of this machine lead to ports of a notebook, or of a job that was submitted"
            " with --ssh, until Ctrl-C. PORT is one port on both sides, or HERE:THERE."
        ),
        (
            "将本机端口转发到 Notebook 或以 --ssh 提交的作业的端口，按 Ctrl-C 结束。PORT 为两端相同的"
            "端口，或写作 HERE:THERE。"
        ),
    ),
    "code": (
        (
            "Make a notebook, or a job that was submitted with --ssh, a host that ssh, scp, rsync and editors know, and open its home in VS"
            " Code where that is installed. It is one until danlu notebook stop."
        ),
        (
            "将 Notebook 或以 --ssh 提交的作业登记为 ssh、scp、rsync 和编辑器都认识的主机；已安装 VS Code 时打开其主目录。"
            "执行 danlu notebook stop 后移除。"
        ),
    ),
    "code.print_only": ("Print the host's name and open nothing.", "只输出主机名，不打开编辑器。"),
}
