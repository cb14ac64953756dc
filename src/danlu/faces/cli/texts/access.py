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
}
