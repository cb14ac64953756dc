"""Parts of sentences that code hands to a text (what was expected, what to do), in Chinese.

The key is the English phrase itself; `{}` stands for a value. `tests/model/test_texts.py` finds
every phrase in the source that is missing here.
"""

from __future__ import annotations

import re
from functools import cache

PHRASES: dict[str, str] = {
    "notebooks and jobs name the image by it": "Notebook 和作业以它指代该镜像",
    # what was found
    "a '.' or '..' part": "“.”或“..”部分",
    "a NUL character": "NUL 字符",
    "a string with a NUL character": "含 NUL 字符的字符串",
    "half a surrogate pair, which is not valid Unicode": "半个代理对，不是合法的 Unicode",
    "half of a surrogate pair": "半个代理对",
    "other characters than letters, digits, '_' and '-'": "字母、数字、“_”和“-”以外的字符",
    "what a channel's name may not hold": "通道名称不允许的字符",
    "what no variable name may hold": "变量名不允许的字符",
    "white space or '='": "空白字符或“=”",
    "null": "null",
    "its Base64 is damaged": "其 Base64 已损坏",
    "what it holds is not what its first word says, or it is cut off": (
        "内容与首个单词所示的类型不符，或不完整"
    ),
    "it names no application": "缺少应用名",
    "its point has not the length that its kind asks for": "其点的长度与类型不符",
    "an RSA key holds two numbers": "RSA 密钥应含两个数",
    "its modulus has {} bits; {} to {} are taken": "模数为 {} 位；可接受 {} 至 {} 位",
    "its exponent is none": "其指数不合法",
    # what was expected
    "a JSON list of texts, the first of them a command": "JSON 字符串列表，第一项为命令",
    "a command line": "命令行",
    "1 to {} letters, digits, '-', '_' or '.'": "1 至 {} 个字母、数字、“-”、“_”或“.”",
    "remove one first": "请先删除一个",
    "send one public key": "请发送一个公钥",
    "UTC milliseconds since 1970, or a time such as 2026-01-31T23:59:59Z": (
        "1970 年以来的 UTC 毫秒数，或形如 2026-01-31T23:59:59Z 的时间"
    ),
    "a .py or .ipynb file (use algorithm.command for anything else)": (
        ".py 或 .ipynb 文件（其他程序请使用 algorithm.command）"
    ),
    "64 hexadecimal digits": "64 个十六进制数字",
    "a Python version such as 3.11, or 3.13t for a free-threaded one": (
        "形如 3.11 的 Python 版本，自由线程版写作 3.13t"
    ),
    "a URL such as postgresql://user@host:5432/danlu": "形如 postgresql://user@host:5432/danlu 的 URL",
    "a GPU's model or its compute capability": "GPU 型号或其计算能力",
    "a Python version such as 3.11": "形如 3.11 的 Python 版本",
    "a part of one line, with * for any text; not empty and not stars alone": (
        "一行中的部分文本，可用 * 代表任意文本；不能为空，也不能只有 *"
    ),
    "send no-retry or avoid-node": "请填写 no-retry 或 avoid-node",
    "a boolean": "布尔值",
    "a driver's version such as 535.104.05, as nvidia-smi shows it": (
        "nvidia-smi 所显示的驱动版本，如 535.104.05"
    ),
    "a digest of the form sha256:…": "形如 sha256:… 的摘要",
    "a package with versions such as numpy>=2,<3, without a URL": "带版本的软件包，如 numpy>=2,<3，不含 URL",
    "a plain word": "不含空白和特殊字符的单词",
    "a release of torch such as 2.8.0": "torch 的版本，如 2.8.0",
    "a file's name without a path": "不含路径的文件名",
    "a list": "列表",
    "a name that does not begin with MA_ or DANLU_, which the platform sets": (
        "不以 MA_ 或 DANLU_ 开头的名称（由平台设置）"
    ),
    "a number": "数字",
    "a domain such as nb.example.com or https://nb.example.com:8443": (
        "域名，例如 nb.example.com 或 https://nb.example.com:8443"
    ),
    "a number from {} to {}": "{} 至 {} 之间的数字",
    "a string": "字符串",
    "a string without one": "不含该字符的字符串",
    "a table": "表",
    "a table with cpus and memory_gib": "含 cpus 和 memory_gib 的表",
    "a tag such as cu128, or cpu": "cu128 这样的标签，或 cpu",
    "a user's name": "用户名",
    "a version such as 2.8 or 2.8-cpu": "形如 2.8 或 2.8-cpu 的版本",
    "a text": "文本",
    "a text within one line": "单行之内的文本",
    "FIRST:LAST such as 100:199, 100: or :99, and not together with last": (
        "FIRST:LAST，如 100:199、100: 或 :99，且不与 last 同用"
    ),
    "a version of the C library such as 2.28": "C 库的版本，如 2.28",
    "a version of torch such as 2.8.0, or a series such as 2.8": "torch 的版本，如 2.8.0，或系列，如 2.8",
    "2": "2",
    "Enabled or Suspended": "Enabled 或 Suspended",
    "a text without controls": "不含控制字符的文本",
    "a whole number": "整数",
    "bytes=0-99": "bytes=0-99",
    "the NextContinuationToken of a listing before": "上一次列举返回的 NextContinuationToken",
    "the length of the object, 0 for a new one": "对象的当前长度，新对象为 0",
    "the address of the S3 server, since objects is s3": "S3 服务器的地址（objects 为 s3）",
    "the new key": "新的键",
    "url": "url",
    "a whole number from {} to {}": "{} 至 {} 之间的整数",
    "an absolute path below {} or {}, without '..'": "{} 或 {} 之下的绝对路径，不含“..”",
    "an image reference such as debian:bookworm": "镜像引用，如 debian:bookworm",
    "another value": "其他类型的值",
    "an object": "对象",
    "its normal spelling": "其规范写法",
    "left out when algorithm.command is given: a job runs one or the other": (
        "在提供 algorithm.command 时省略：作业只能运行其一"
    ),
    "left out, or the same as spec.auto_stop ({} s)": "省略，或与 spec.auto_stop（{} 秒）相同",
    "notify or stop, unless danlu.retries is 1 or more and danlu.retry_on has hang": (
        "notify 或 stop；若为 restart，则 danlu.retries 须不小于 1，且 danlu.retry_on 含 hang"
    ),
    "no node is up": "没有在线节点",
    "one of {}": "{} 之一",
    "an image: [registry[:port]/]name[:tag][@sha256:digest], in lower case": (
        "镜像：[registry[:port]/]name[:tag][@sha256:digest]，小写"
    ),
    "jobs of this server run in containers; name an image with engine.image_url": (
        "该服务器的作业在容器中运行；请用 engine.image_url 指定镜像"
    ),
    "a package such as einops>=0.8": "einops>=0.8 这样的软件包",
    "jobs name the image by it": "作业用它指定镜像",
    "danlu image lock makes one": "可用 danlu image lock 生成",
    "say name and lock": "请给出 name 和 lock",
    "register a lock (danlu.lock); jobs name images of registries": (
        "请注册锁文件（danlu.lock）；容器仓库的镜像由作业直接指定"
    ),
    "images are seen by everybody here": "此处的镜像对所有人可见",
    "use description": "请使用 description",
    "name one package": "只写一个软件包",
    "name one of {}": "请给出 {} 之一",
    "a name of letters, digits, '.', '_' and '-', at most 64 of them": (
        "由字母、数字、“.”“_”“-”组成、至多 64 个字符的名称"
    ),
    'tables of the settings file: [flavors."id"]': '设置文件中的表：[flavors."id"]',
    "pypi or index": "pypi 或 index",
    "small letters, digits and '-'": "小写字母、数字和“-”",
    "the digest of what was sent, which is {}": "所发送内容的摘要，即 {}",
    "the name of a Debian package": "Debian 软件包的名称",
    "the time of an apt snapshot such as 20250520T000000Z": "apt 快照的时间，如 20250520T000000Z",
    "the name of a variable": "变量名",
    "the name of a wheel of that package and version": "该软件包该版本的 wheel 文件名",
    "the largest node has {}": "最大的节点有 {}",
    "true or false": "true 或 false",
    "two values, low and high": "两个值：下限和上限",
    "two values, the least and the greatest": "两个值：最小值和最大值",
    # units
    "bytes": "字节",
    "characters": "字符",
    # what to do
    "Debian packages need a base": "Debian 软件包需要基础镜像",
    "TLS needs certificate and key": "TLS 需要同时提供证书和私钥",
    "the directory of a Python environment, with bin/python in it": (
        "某个 Python 环境的目录，其中有 bin/python"
    ),
    "a boot file is looked for in the code directory": "启动文件须位于代码目录中",
    "a program can be given no longer argument; put it into a file and pass that as an input": (
        "程序无法接收更长的参数；请写入文件并作为输入传入"
    ),
    "a program can be given no longer variable; put it into a file": (
        "程序无法接收更长的变量；请写入文件"
    ),
    "a program cannot be given more; put values into a file and pass it as an input": (
        "程序无法接收更多内容；请写入文件并作为输入传入"
    ),
    "an object key cannot be longer": "对象键不能更长",
    "ask in several requests": "请分多次请求",
    "every channel has a name": "每个通道都要有名称",
    "every image says it": "每个镜像都要写明",
    "every parameter has a name": "每个参数都要有名称",
    "give algorithm.code_dir with algorithm.boot_file, or algorithm.command": (
        "请提供 algorithm.code_dir 与 algorithm.boot_file，或 algorithm.command"
    ),
    "give at least one value": "请至少提供一个值",
    "give it 1 to 64 characters": "请提供 1 至 64 个字符",
    "give the user's password": "请提供该用户的密码",
    "it holds the job's name": "其中包含作业名称",
    "it is what this call changes": "该接口要修改的正是此项",
    "it says what the job runs": "其中说明作业运行什么",
    "jobs run in an environment of this server; leave it out for the default": (
        "作业在本服务器的环境中运行；省略即使用默认环境"
    ),
    "join them into fewer directories": "请合并为更少的目录",
    "keep long values in an object of their own": "请将较长的值放入单独的对象",
    "mount fewer": "请减少挂载",
    "no program can be given one; remove it": "程序无法接收该字符；请将其移除",
    "put settings into a file in the code directory": "请将设置写入代码目录中的文件",
    "put the steps into a script in the code directory": "请将各步骤写入代码目录中的脚本",
    "put them into a file in the code directory": "请将其写入代码目录中的文件",
    "remove it": "请将其移除",
    "remove some": "请移除一些",
    "say after how many hours the job is stopped": "请说明多少小时后停止作业",
    "say what to look for": "请说明要查找的内容",
    "say where the data lies": "请说明数据所在位置",
    "say who signs in": "请说明由谁登录",
    'send ["password"]': '请发送 ["password"]',
    "send an empty string for no value": "没有值时请发送空字符串",
    "send auth.identity with methods and password": "请发送含 methods 和 password 的 auth.identity",
    "send both times or none": "请同时发送两个时间，或都不发送",
    "send fewer": "请减少数量",
    "send fewer parameters": "请减少参数",
    "send terminate": "请发送 terminate",
    "send valid UTF-8": "请发送合法的 UTF-8",
    "shorten it": "请缩短",
    "the script is given --name=value; put '=' into the value only": (
        "脚本得到的是 --name=value；“=”只能出现在值中"
    ),
    "use letters, digits and '_', not beginning with a digit": (
        "请使用字母、数字和“_”，且不以数字开头"
    ),
    "use letters, digits, '_' (and '-' or '.' unless access_method is env)": (
        "请使用字母、数字、“_”（access_method 不为 env 时还可用“-”或“.”）"
    ),
    "use only those": "请只使用这些字符",
    "write the path without it": "请去掉该部分",
}

PARTS = frozenset({"remedy", "expected", "found", "unit", "lacks"})
"""The values of a text that are phrases."""


def chinese(phrase: str) -> str:
    """`phrase` in Chinese; as it is where there is no translation (a name, say)."""
    exact = PHRASES.get(phrase)
    if exact is not None:
        return exact
    for pattern, said in _patterns():
        match = pattern.fullmatch(phrase)
        if match is not None:
            return said.format(*match.groups())
    return phrase


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(re.escape(phrase).replace(r"\{\}", "(.+?)"), re.DOTALL), said)
        for phrase, said in PHRASES.items()
        if "{}" in phrase
    ]
