"""What the commands about keys and SSH say."""

from __future__ import annotations

ACCESS: dict[str, tuple[str, str]] = {
    "columns.keys": ("NAME|FINGERPRINT|KIND|ADDED", "名称|指纹|类型|添加时间"),
    "key-added": (
        "added '{name}': {fingerprint}",
        "已添加“{name}”：{fingerprint}",
    ),
    "key-removed": (
        "removed '{name}'; connections that came in with it are cut off",
        "已删除“{name}”；使用它建立的连接已断开",
    ),
    "keys-none": (
        "no keys yet; add one: danlu key add ~/.ssh/id_ed25519.pub",
        "还没有密钥；可添加：danlu key add ~/.ssh/id_ed25519.pub",
    ),
    "key-file": (
        "cannot read the public key '{path}': {detail}",
        "无法读取公钥“{path}”：{detail}",
    ),
    "key-private": (
        "'{path}' is a private key, which nobody else may see; give its .pub file",
        "“{path}”是私钥，不得外传；请给出对应的 .pub 文件",
    ),
    "key-no-default": (
        (
            "there is no public key in {directory}; make one with ssh-keygen -t ed25519, or name the"
            " file"
        ),
        "{directory} 中没有公钥；请用 ssh-keygen -t ed25519 生成，或指定文件",
    ),
    "ssh-no-client": (
        "there is no ssh on this machine; install OpenSSH's client",
        "本机没有 ssh；请安装 OpenSSH 客户端",
    ),
    "ssh-no-keys": (
        "no key of your profile may come in; add one: danlu key add",
        "您的资料中没有可用于登录的密钥；请添加：danlu key add",
    ),
    "ssh-not-ready": (
        "SSH of '{name}' does not answer yet; try again in a moment",
        "“{name}”的 SSH 尚未就绪；请稍后再试",
    ),
    "ssh-config": ("cannot write '{path}': {detail}", "无法写入“{path}”：{detail}"),
    "port-malformed": (
        "'{value}' is no port; give PORT or HERE:THERE, each from 1 to 65535",
        "“{value}”不是端口；请给出 PORT 或 HERE:THERE，取值 1 到 65535",
    ),
    "port-open": (
        "http://127.0.0.1:{here} leads to port {there} of {notebook}; Ctrl-C ends it",
        "http://127.0.0.1:{here} 通向 {notebook} 的端口 {there}；按 Ctrl-C 结束",
    ),
    "code-host": (
        "ssh, scp, rsync and editors (Remote-SSH) know {host} now; its home is {home}",
        "ssh、scp、rsync 和编辑器（Remote-SSH）现在都认识 {host}；主目录为 {home}",
    ),
    "code-opening": ("opening {home} of {host} in the editor", "正在编辑器中打开 {host} 的 {home}"),
}
