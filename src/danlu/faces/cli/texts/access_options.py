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
}
