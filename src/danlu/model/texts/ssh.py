"""Texts of errors about public keys and the way in over SSH."""

from __future__ import annotations

SSH_ERRORS: dict[str, tuple[str, str]] = {
    "ssh-key-private": (
        "{field} is a private key; keep it to yourself and send the public one (the file with .pub)",
        "{field} 是私钥；请妥善保管，改为发送公钥（.pub 文件）",
    ),
    "ssh-key-count": (
        "{field} holds {count} keys; send one public key, in one line",
        "{field} 中有 {count} 个密钥；请发送一行一个公钥",
    ),
    "ssh-key-kind": (
        (
            "{field} begins with '{value}' and is no public key that is taken here ({kinds}); make one"
            " with ssh-keygen -t ed25519"
        ),
        "{field} 以“{value}”开头，不是可接受的公钥（{kinds}）；可用 ssh-keygen -t ed25519 生成",
    ),
    "ssh-key-malformed": (
        "{field} is no whole public key: {found}; copy it again from its .pub file",
        "{field} 不是完整的公钥：{found}；请从 .pub 文件重新复制",
    ),
    "ssh-key-taken": (
        (
            "the key {fingerprint} is in a profile already; a key says who somebody is, so it can be in"
            " one only (`danlu key ls`)"
        ),
        "密钥 {fingerprint} 已在某个用户的资料中；密钥代表身份，只能属于一个用户（danlu key ls）",
    ),
    "ssh-key-name-taken": (
        "you have a key named '{name}' already; choose another name, or remove it (`danlu key rm`)",
        "您已有名为“{name}”的密钥；请换一个名称，或先将其删除（danlu key rm）",
    ),
    "ssh-key-missing": (
        "there is no key '{name}' in your profile; `danlu key ls` lists them",
        "您的资料中没有密钥“{name}”；可用 danlu key ls 查看",
    ),
}
