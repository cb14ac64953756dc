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
    "ssh-key-pair-missing": (
        "{field}: there is no key '{value}' in your profile (there are: {keys}); add it: danlu key add",
        "{field}：您的资料中没有密钥“{value}”（现有：{keys}）；请先添加：danlu key add",
    ),
    "ssh-key-name-taken": (
        "you have a key named '{name}' already; choose another name, or remove it (`danlu key rm`)",
        "您已有名为“{name}”的密钥；请换一个名称，或先将其删除（danlu key rm）",
    ),
    "ssh-key-missing": (
        "there is no key '{name}' in your profile; `danlu key ls` lists them",
        "您的资料中没有密钥“{name}”；可用 danlu key ls 查看",
    ),
    # the door
    "ssh-key-unknown": (
        "the key is in nobody's profile; add it: danlu key add",
        "该密钥不在任何用户的资料中；请先添加：danlu key add",
    ),
    "ssh-key-not-here": (
        "'{name}' does not take the key {fingerprint}; add it to the keys of its endpoint",
        "“{name}”不接受密钥 {fingerprint}；请将其加入该端点的密钥列表",
    ),
    "ssh-address": (
        "'{name}' does not take connections from {address}; its list of allowed addresses has to name it",
        "“{name}”不接受来自 {address} 的连接；须将其加入允许的地址列表",
    ),
    "ssh-port": (
        "'{name}' has SSH on port 22 only, and {port} was asked for; forward other ports with ssh -L",
        "“{name}”仅在 22 端口提供 SSH，而请求的是 {port}；其他端口请用 ssh -L 转发",
    ),
    "ssh-no-shell": (
        (
            "there is nothing to log in to here; name a notebook or job: ssh NAME@HOST, or"
            " ssh -J danlu@HOST:PORT NAME"
        ),
        "此处不能登录；请指定 Notebook 或作业：ssh 名称@主机，或 ssh -J danlu@主机:端口 名称",
    ),
    "ssh-host-missing": (
        "you have no running notebook or job '{name}' here; `danlu notebook ls` and `danlu ps` list them",
        "您没有运行中的 Notebook 或作业“{name}”；可用 danlu notebook ls 和 danlu ps 查看",
    ),
    "ssh-not-wanted": (
        "the job '{name}' was submitted without SSH; submit it with --ssh (endpoints.ssh)",
        "作业“{name}”提交时未开启 SSH；请使用 --ssh（endpoints.ssh）提交",
    ),
    "ssh-not-yet": (
        "'{name}' does not answer over SSH: it is starting, or its program has ended; try again",
        "“{name}”尚未响应 SSH：正在启动，或程序已结束；请稍后重试",
    ),
    "ssh-engine": (
        "tasks of this server's engine cannot be reached over SSH",
        "该服务器所用引擎中的任务无法通过 SSH 访问",
    ),
    "ssh-extra": (
        "SSH on port {port} needs asyncssh; install danlu[notebook], or leave ssh_port out",
        "在端口 {port} 上提供 SSH 需要 asyncssh；请安装 danlu[notebook]，或不设置 ssh_port",
    ),
    "ssh-off": (
        "this server has no SSH; install danlu[notebook] there and set ssh_port",
        "该服务器未开启 SSH；请在服务器上安装 danlu[notebook] 并设置 ssh_port",
    ),
    "ssh-host-key": (
        "the host key {path} cannot be read: {detail}; restore it, or remove it so that a new one is made",
        "无法读取主机密钥 {path}：{detail}；请恢复该文件，或将其删除以生成新密钥",
    ),
    "ssh-broken": (
        "SSH could not be started in '{name}': {detail}",
        "无法在“{name}”中启动 SSH：{detail}",
    ),
    "ssh-not-installed": (
        "there is no {detail} where '{name}' runs; install openssh-server there",
        "“{name}”的运行环境中没有 {detail}；请在其中安装 openssh-server",
    ),
    "ssh-no-user": (
        "'{name}' runs as user {detail}, which /etc/passwd there does not name; add the user to the image",
        "“{name}”以用户 {detail} 运行，但其 /etc/passwd 中没有该用户；请在镜像中添加该用户",
    ),
}
