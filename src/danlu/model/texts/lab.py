"""What the pages at a notebook's origin say, and why a request to one is refused."""

from __future__ import annotations

LAB_ERRORS: dict[str, tuple[str, str]] = {
    "lab-origin": (
        (
            "a page of another site ('{origin}') asked this notebook for something; only the"
            " notebook's own pages may"
        ),
        "其他网站的页面（“{origin}”）向该 Notebook 发出了请求；只有 Notebook 自己的页面可以这样做",
    ),
    "lab-no-session": (
        "this browser has not been let in here; type: danlu notebook open {notebook}",
        "该浏览器尚未获准进入；请执行：danlu notebook open {notebook}",
    ),
    "lab-ticket": (
        (
            "this link has been used or is older than a minute; get another one: danlu notebook"
            " open {notebook}"
        ),
        "该链接已被使用，或已超过一分钟；请重新获取：danlu notebook open {notebook}",
    ),
    "lab-other-start": (
        (
            "notebook '{name}' has been started anew since this browser was let in; type: danlu"
            " notebook open {notebook}"
        ),
        "自该浏览器获准进入以来，Notebook“{name}”已重新启动；请执行：danlu notebook open {notebook}",
    ),
    "lab-starting": (
        "notebook '{name}' is starting ({detail})",
        "Notebook“{name}”正在启动（{detail}）",
    ),
    "lab-stopping": (
        "notebook '{name}' is being stopped ({detail})",
        "Notebook“{name}”正在停止（{detail}）",
    ),
    "lab-stopped": (
        (
            "notebook '{name}' is stopped ({detail}); its home is kept, kernels and terminals are"
            " gone; type: danlu notebook start {notebook}"
        ),
        (
            "Notebook“{name}”已停止（{detail}）；主目录已保留，内核和终端已不复存在；请执行：danlu"
            " notebook start {notebook}"
        ),
    ),
    "lab-failed": (
        (
            "notebook '{name}' has failed ({detail}); its home is kept; type: danlu notebook start"
            " {notebook}"
        ),
        "Notebook“{name}”失败（{detail}）；主目录已保留；请执行：danlu notebook start {notebook}",
    ),
    "lab-silent": (
        (
            "JupyterLab of notebook '{name}' does not answer, though the notebook runs; if this"
            " lasts, stop and start it: danlu notebook stop {notebook}"
        ),
        (
            "Notebook“{name}”在运行，但其 JupyterLab 没有应答；若持续如此，请停止后重新启动：danlu"
            " notebook stop {notebook}"
        ),
    ),
    "lab-not-running": (
        "notebook '{name}' is {state}, there is nothing to open; type: danlu notebook start {notebook}",
        "Notebook“{name}”的状态为 {state}，无可打开；请执行：danlu notebook start {notebook}",
    ),
    "lab-no-origin": (
        (
            "this server was asked as '{host}' and has no domain for notebooks; set notebook_domain"
            " to one of which all names (nb-….DOMAIN) lead here, or come by a forwarded port (ssh -L)"
        ),
        (
            "对该服务器的访问使用了“{host}”，而它没有供 Notebook 使用的域名；请将 notebook_domain 设为"
            "所有名称（nb-….域名）均指向此处的域名，或通过端口转发（ssh -L）访问"
        ),
    ),
}

LAB_PAGES: dict[str, tuple[str, str]] = {
    "lab-ends-soon": (
        "This notebook will be stopped in {left} min: {because}",
        "该 Notebook 将在 {left} 分钟后停止：{because}",
    ),
    "lab-because-lease-ended": ("its lease of {minutes} min ends", "{minutes} 分钟的租期即将结束"),
    "lab-because-idle": (
        "nothing has happened in it for so long that it counts as idle ({minutes} min)",
        "长时间没有任何活动，即将达到空闲上限（{minutes} 分钟）",
    ),
    "lab-because-run-limit": (
        "it will have run for {minutes} min, the most that this server allows",
        "其运行时间将达到本服务器允许的上限（{minutes} 分钟）",
    ),
    "lab-ends": (
        "This notebook will be stopped in {left} min unless it is extended or used again",
        "若不续期或继续使用，该 Notebook 将在 {left} 分钟后停止",
    ),
    "lab-ends-never": (
        "Nothing ends this notebook for now",
        "目前没有什么会让该 Notebook 停止",
    ),
    "lab-extend": ("Extend", "续期"),
    "lab-extend-command": (
        "Extend this notebook: count its lease and its idleness from now",
        "为该 Notebook 续期：租期和空闲时间从现在起重新计算",
    ),
    "lab-extended": ("Extended. {then}", "已续期。{then}"),
    "lab-type-extend": ("{said}; type danlu-extend to keep it", "{said}；键入 danlu-extend 可续期"),
    "lab-heading-starting": ("Starting", "正在启动"),
    "lab-heading-stopping": ("Stopping", "正在停止"),
    "lab-heading-stopped": ("Stopped", "已停止"),
    "lab-heading-failed": ("Failed", "失败"),
    "lab-heading-silent": ("No answer", "没有应答"),
    "lab-heading-denied": ("Not let in", "未获准进入"),
    "lab-heading-missing": ("No such notebook", "没有这个 Notebook"),
    "lab-looks-again": (
        "This page looks again by itself and becomes JupyterLab when it is there.",
        "本页面会自动刷新，JupyterLab 就绪后即会显示。",
    ),
    "lab-no-detail": ("no further details", "无更多详情"),
}
