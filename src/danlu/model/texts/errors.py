"""Texts of errors: what was wrong, where, and what to do next."""

from __future__ import annotations

ERRORS: dict[str, tuple[str, str]] = {
    # the shape of a request
    "not-json": (
        "the request body is not valid JSON: {detail}; send a JSON object in UTF-8",
        "请求体不是合法的 JSON：{detail}；请发送 UTF-8 编码的 JSON 对象",
    ),
    "body-too-large": (
        (
            "the request body is {size} bytes and the limit is {limit}; put large values into a file"
            " and pass it as an input"
        ),
        "请求体为 {size} 字节，上限为 {limit} 字节；请将较大的内容写入文件并作为输入传入",
    ),
    "field-missing": (
        "{field} is missing; {remedy}",
        "缺少字段 {field}；{remedy}",
    ),
    "field-type": (
        "{field} is {found} and must be {expected}",
        "字段 {field} 的类型为 {found}，应为 {expected}",
    ),
    "field-value": (
        "{field} is '{value}'; it must be {expected}",
        "字段 {field} 的值为“{value}”；应为 {expected}",
    ),
    "field-too-long": (
        "{field} is {size} {unit} long and the limit is {limit}; {remedy}",
        "字段 {field} 的长度为 {size}（{unit}），上限为 {limit}；{remedy}",
    ),
    "field-characters": (
        "{field} is '{value}' and holds {found}; {remedy}",
        "字段 {field} 的值“{value}”包含 {found}；{remedy}",
    ),
    "field-unsupported": (
        "{field} is not supported yet; remove it from the request ({remedy})",
        "暂不支持字段 {field}；请从请求中移除（{remedy}）",
    ),
    "field-unknown": (
        "{field} is not a field of this request; check its spelling or remove it",
        "请求中没有字段 {field}；请检查拼写或将其移除",
    ),
    "too-many": (
        "{field} has {count} entries and the limit is {limit}; {remedy}",
        "字段 {field} 有 {count} 项，上限为 {limit} 项；{remedy}",
    ),
    "duplicate": (
        "{field} holds '{value}' twice; every name may stand once",
        "字段 {field} 中“{value}”出现了两次；名称不能重复",
    ),
    # jobs
    "job-missing": (
        "there is no training job '{job}' in this workspace; `danlu ps` lists them",
        "该工作空间中没有训练作业“{job}”；可用 `danlu ps` 查看",
    ),
    "task-missing": (
        "job '{job}' has no task '{task}'; its tasks are {tasks}",
        "作业“{job}”没有任务“{task}”；它的任务有 {tasks}",
    ),
    "job-live": (
        "job '{job}' is {state}; stop it first (`danlu stop {job}`), then delete it",
        "作业“{job}”处于 {state} 状态；请先停止（`danlu stop {job}`）再删除",
    ),
    "job-final": (
        "job '{job}' has already ended ({state}); there is nothing to stop",
        "作业“{job}”已经结束（{state}），无需停止",
    ),
    "job-ambiguous": (
        "'{job}' fits {count} jobs ({jobs}); give more characters of the id",
        "“{job}”匹配到 {count} 个作业（{jobs}）；请多输入几位 ID",
    ),
    "log-not-ready": (
        "task '{task}' of job '{job}' has not written a log yet",
        "作业“{job}”的任务“{task}”还没有日志",
    ),
    "flavor-unknown": (
        "{field} is '{value}' and there is no such flavor; this server has {flavors}",
        "字段 {field} 的值“{value}”不是已有的规格；本服务器提供 {flavors}",
    ),
    "flavor-does-not-fit": (
        (
            "{field} is '{value}', which needs {needs} on each of {nodes} node(s); {lacks}; choose one"
            " of {flavors}"
        ),
        "字段 {field} 的规格“{value}”在 {nodes} 个节点上各需要 {needs}；{lacks}；请改用 {flavors}",
    ),
    "engine-unknown": (
        (
            "{field} is '{value}' and this server has no such engine; leave algorithm.engine out to"
            " run in the server's default environment, or choose one of {engines}"
        ),
        (
            "字段 {field} 的引擎“{value}”不存在；可省略 algorithm.engine 以使用服务器的默认环境，"
            "或改用 {engines}"
        ),
    ),
    "environment-missing": (
        (
            "the environment '{path}' has no Python interpreter (looked for {looked}); set"
            " default_environment to the directory of a virtual environment"
        ),
        (
            "环境“{path}”中没有 Python 解释器（查找了 {looked}）；请将 default_environment"
            " 设为一个虚拟环境的目录"
        ),
    ),
    "obs-url": (
        (
            "{field} is '{value}', which is not an object storage path; write obs://bucket/key/,"
            " s3://bucket/key/ or /bucket/key/"
        ),
        (
            "字段 {field} 的值“{value}”不是对象存储路径；请写成 obs://bucket/key/、s3://bucket/key/"
            " 或 /bucket/key/"
        ),
    ),
    "bucket-missing": (
        (
            "{field} is '{value}' and there is no bucket '{bucket}' in this project; its buckets are"
            " {buckets}"
        ),
        "字段 {field} 的值“{value}”中的桶“{bucket}”在本项目中不存在；现有的桶有 {buckets}",
    ),
    "object-missing": (
        "{field} is '{value}' and nothing is stored there; check the path",
        "字段 {field} 的值“{value}”处没有任何对象；请检查路径",
    ),
    "path-missing": (
        "{field} is '{value}', which does not exist; check the path",
        "字段 {field} 的路径“{value}”不存在；请检查路径",
    ),
    "path-local-refused": (
        (
            "{field} is '{value}': this server does not take paths of its own machine"
            " (allow_local_paths is off); upload the files and pass obs://…"
        ),
        (
            "字段 {field} 的值“{value}”：本服务器不接受本机路径（allow_local_paths 已关闭）；"
            "请先上传文件并使用 obs://…"
        ),
    ),
    "output-shared": (
        (
            "{field} is '{value}' and job '{job}' is still writing there; two live jobs may not share"
            " an output: wait for it, stop it, or choose another path"
        ),
        (
            "字段 {field} 的值“{value}”正被作业“{job}”写入；两个运行中的作业不能共用输出路径：请等待、"
            "停止该作业或更换路径"
        ),
    ),
    "code-missing": (
        "no code directory with the digest '{digest}' is stored here; upload it",
        "此处没有摘要为“{digest}”的代码目录；请上传",
    ),
    "code-dir-missing": (
        "algorithm.code_dir is '{value}' and nothing is stored there; upload the code first",
        "algorithm.code_dir 的值“{value}”处没有代码；请先上传代码",
    ),
    "boot-file-missing": (
        "algorithm.boot_file is '{value}', which is not in the code directory '{code_dir}'",
        "algorithm.boot_file 的值“{value}”不在代码目录“{code_dir}”中",
    ),
    "boot-file-outside": (
        "algorithm.boot_file is '{value}', which is not below algorithm.code_dir '{code_dir}'",
        "algorithm.boot_file 的值“{value}”不在 algorithm.code_dir“{code_dir}”之下",
    ),
    "code-too-many-files": (
        (
            "the code directory holds {count} files and the limit is {limit}; list what is not code in"
            " .danluignore, and pass data as an input"
        ),
        (
            "代码目录包含 {count} 个文件，上限为 {limit} 个；请将非代码文件写入 .danluignore，"
            "数据请作为输入传入"
        ),
    ),
    "code-too-large": (
        (
            "the code directory holds {size} bytes and the limit is {limit} bytes; list what is not"
            " code in .danluignore, and pass data as an input"
        ),
        (
            "代码目录大小为 {size} 字节，上限为 {limit} 字节；请将非代码文件写入 .danluignore，"
            "数据请作为输入传入"
        ),
    ),
    "code-archive": (
        (
            "the code archive cannot be read: {detail}; send an uncompressed or gzipped tar of plain"
            " files and directories"
        ),
        "无法读取代码归档：{detail}；请发送由普通文件和目录组成的 tar 或 tar.gz",
    ),
    "code-name": (
        (
            "'{name}' cannot be the name of a code directory; use 1 to {limit} bytes of UTF-8 without"
            " '/' and NUL, and not '.', '..' or '.complete'"
        ),
        (
            "“{name}”不能作为代码目录名；请使用 1 至 {limit} 字节的 UTF-8，不含“/”和 NUL，且不能是"
            "“.”、“..”或“.complete”"
        ),
    ),
    "code-not-directory": (
        "the code directory '{path}' is not a directory; give the directory that holds the script",
        "代码目录“{path}”不是目录；请给出脚本所在的目录",
    ),
    "code-path-encoding": (
        (
            "the name of '{path}' in the code directory is not valid UTF-8; rename it, or list it in"
            " .danluignore"
        ),
        "代码目录中“{path}”的名称不是合法的 UTF-8；请重命名，或写入 .danluignore",
    ),
    "code-path-outside": (
        (
            "'{path}' in the code archive does not name a place below the code directory; write"
            " relative paths without '..'"
        ),
        "代码归档中的“{path}”不在代码目录之下；请使用不含“..”的相对路径",
    ),
    "code-path-long": (
        (
            "'{path}' in the code directory has a name or path of {size} bytes and the limit is"
            " {limit}; shorten it, or list it in .danluignore"
        ),
        "代码目录中“{path}”的名称或路径为 {size} 字节，上限为 {limit}；请缩短，或写入 .danluignore",
    ),
    "code-path-deep": (
        (
            "'{path}' in the code directory lies {depth} directories deep and the limit is {limit};"
            " move it up, or list it in .danluignore"
        ),
        "代码目录中“{path}”位于 {depth} 层目录之下，上限为 {limit}；请上移，或写入 .danluignore",
    ),
    "code-path-twice": (
        "'{path}' stands twice in the code archive; send every file once",
        "代码归档中“{path}”出现了两次；每个文件只能出现一次",
    ),
    "code-path-both": (
        "'{path}' in the code archive is a file and also the directory of '{below}'; rename one",
        "代码归档中的“{path}”既是文件，又是“{below}”所在的目录；请重命名其中之一",
    ),
    "code-link": (
        (
            "'{path}' in the code directory is a link to '{target}', which is not a file of the code"
            " directory; replace it by the file, or list it in .danluignore"
        ),
        (
            "代码目录中的“{path}”是指向“{target}”的链接，而后者不是代码目录中的文件；请换成文件本身，"
            "或写入 .danluignore"
        ),
    ),
    "code-special": (
        (
            "'{path}' in the code directory is {kind}; only plain files and directories can be sent;"
            " list it in .danluignore"
        ),
        "代码目录中的“{path}”是特殊文件（{kind}）；只能发送普通文件和目录；请写入 .danluignore",
    ),
    "code-unreadable": (
        (
            "'{path}' in the code directory cannot be read: {detail}; make it readable, or list it in"
            " .danluignore"
        ),
        "无法读取代码目录中的“{path}”：{detail}；请修改权限，或写入 .danluignore",
    ),
    "code-changed": (
        "'{path}' in the code directory changed while it was read; save it and submit again",
        "代码目录中的“{path}”在读取过程中发生了变化；请保存后重新提交",
    ),
    "code-credentials": (
        (
            "the code directory holds what looks like credentials: {paths}; list it in .danluignore"
            " unless the job needs it"
        ),
        "代码目录中有疑似凭据的文件：{paths}；若作业不需要，请写入 .danluignore",
    ),
    # objects
    "no-such-bucket": (
        "there is no bucket '{bucket}'",
        "不存在桶“{bucket}”",
    ),
    "bucket-name": (
        (
            "'{bucket}' is not a bucket name; use 3 to 63 lower-case letters, digits, dots and hyphens,"
            " beginning and ending with a letter or digit"
        ),
        (
            "“{bucket}”不是合法的桶名；请使用 3 至 63 个小写字母、数字、点和连字符，并以字母或数字开头和"
            "结尾"
        ),
    ),
    "bucket-exists": (
        "bucket '{bucket}' exists already",
        "桶“{bucket}”已存在",
    ),
    "bucket-not-empty": (
        "bucket '{bucket}' still holds objects; delete them first",
        "桶“{bucket}”中仍有对象；请先删除",
    ),
    "no-such-object": (
        "there is no object '{key}' in bucket '{bucket}'",
        "桶“{bucket}”中没有对象“{key}”",
    ),
    "object-key": (
        "an object key is 1 to 1024 bytes of UTF-8; this one is {size} bytes ('{key}')",
        "对象键应为 1 至 1024 字节的 UTF-8；此键为 {size} 字节（“{key}”）",
    ),
    "object-key-encoding": (
        "the object key '{key}' is not valid Unicode (it holds half a surrogate pair); rename it",
        "对象键“{key}”不是合法的 Unicode（包含不成对的代理字符）；请重命名",
    ),
    "object-condition": (
        "object '{key}' in bucket '{bucket}' does not meet the condition ({condition})",
        "桶“{bucket}”中的对象“{key}”不满足条件（{condition}）",
    ),
    "object-range": (
        "bytes {start}–{end} lie outside object '{key}', which holds {size} bytes",
        "范围 {start}–{end} 超出对象“{key}”（共 {size} 字节）",
    ),
    "object-damaged": (
        "object '{key}' in bucket '{bucket}' is damaged: {detail}",
        "桶“{bucket}”中的对象“{key}”已损坏：{detail}",
    ),
    # who is asking
    "no-credentials": (
        (
            "the request is not signed and carries no token; sign it with an access key"
            " (SDK-HMAC-SHA256) or send X-Auth-Token"
        ),
        "请求既未签名也未携带令牌；请使用访问密钥签名（SDK-HMAC-SHA256）或携带 X-Auth-Token",
    ),
    "algorithm-unsupported": (
        "the signature algorithm '{algorithm}' is not accepted; sign with SDK-HMAC-SHA256",
        "不接受签名算法“{algorithm}”；请使用 SDK-HMAC-SHA256 签名",
    ),
    "signature-malformed": (
        "the Authorization header cannot be read: {detail}",
        "无法解析 Authorization 头：{detail}",
    ),
    "signature-header-missing": (
        "the header '{header}' must be sent and signed",
        "必须发送请求头“{header}”并对其签名",
    ),
    "signature-date": (
        (
            "X-Sdk-Date is '{value}', {off_s} s away from this server's clock ({now}); set the clock"
            " right (the window is {window_s} s)"
        ),
        "X-Sdk-Date 为“{value}”，与服务器时钟（{now}）相差 {off_s} 秒；请校准时钟（允许 {window_s} 秒）",
    ),
    "signature-body": (
        "the body does not match the hash that was signed (X-Sdk-Content-Sha256)",
        "请求体与所签名的哈希（X-Sdk-Content-Sha256）不符",
    ),
    "signature-key": (
        "the access key '{access_key}' is not known to this server",
        "服务器上没有访问密钥“{access_key}”",
    ),
    "signature-mismatch": (
        (
            "the signature does not match the request; check the secret key, and that a proxy between"
            " changes neither Host ({host}) nor path"
        ),
        "签名与请求不符；请检查私有密钥，并确认中间代理没有改动 Host（{host}）或路径",
    ),
    "signature-replayed": (
        "this signed request was received before; sign it again to repeat it",
        "该签名请求此前已收到；如需重复请重新签名",
    ),
    "token-unknown": (
        "the token is not known or has expired; ask for a new one (POST /v3/auth/tokens)",
        "令牌无效或已过期；请重新获取（POST /v3/auth/tokens）",
    ),
    "link-invalid": (
        "this link has expired or was changed; ask for a new one",
        "该链接已过期或被改动；请重新获取",
    ),
    "password-wrong": (
        "the user name or password is wrong",
        "用户名或密码错误",
    ),
    "too-many-tries": (
        "too many failed sign-ins; try again in {wait_s} s",
        "登录失败次数过多；请在 {wait_s} 秒后重试",
    ),
    "project-denied": (
        "project '{project}' is not yours; your project is '{own}'",
        "项目“{project}”不属于您；您的项目是“{own}”",
    ),
    "host-refused": (
        "the Host header '{host}' is not one of this server's names ({names})",
        "Host 头“{host}”不是本服务器的名称（{names}）",
    ),
    "no-such-path": (
        "there is no API at {method} {path}",
        "不存在接口 {method} {path}",
    ),
    "method-not-allowed": (
        "{path} does not take {method}",
        "{path} 不支持 {method} 方法",
    ),
    # the server
    "internal": (
        "the server failed on this request; its log names the cause under request {request_id}",
        "服务器处理该请求时出错；其日志中以请求号 {request_id} 记录了原因",
    ),
    "busy": (
        "the server cannot take this now: {detail}; try again in a moment",
        "服务器暂时无法处理：{detail}；请稍后重试",
    ),
    "queue-full": (
        "{count} jobs are waiting and the limit is {limit}; wait until some have started",
        "已有 {count} 个作业在排队，上限为 {limit}；请等待部分作业开始后再提交",
    ),
    "disk-full": (
        "the disk that holds '{path}' is full ({detail}); free some space",
        "“{path}”所在的磁盘已满（{detail}）；请释放空间",
    ),
    "store-failed": (
        (
            "the files of the object store in '{path}' cannot be used: {detail}; check the disk and the"
            " permissions of that directory, then try again"
        ),
        "无法使用“{path}”中对象存储的文件：{detail}；请检查磁盘及该目录的权限后重试",
    ),
    "data-dir-in-use": (
        (
            "the data directory '{path}' is in use by another server (process {pid}); stop that one"
            " (`danlu down`) or give another --data"
        ),
        "数据目录“{path}”正被另一个服务器（进程 {pid}）使用；请停止它（`danlu down`）或更换 --data",
    ),
    "database-newer": (
        (
            "the database was written by a newer Danlu (schema {found}; this program knows up to"
            " {known}); use that version, or restore a backup"
        ),
        (
            "数据库由更新版本的 Danlu 写入（结构版本 {found}，本程序最高支持 {known}）；请使用该版本或恢复"
            "备份"
        ),
    ),
    "database-damaged": (
        "the database '{path}' is damaged: {detail}; restore a backup",
        "数据库“{path}”已损坏：{detail}；请恢复备份",
    ),
    "database-foreign": (
        "'{path}' is a database of another program; give a file of its own to Danlu",
        "“{path}”是其他程序的数据库；请为 Danlu 指定单独的文件",
    ),
    "database-encoding": (
        "the database '{path}' keeps texts as {found}; make one with the encoding UTF8",
        "数据库“{path}”的文本编码为 {found}；请创建编码为 UTF8 的数据库",
    ),
    "database-read-only": (
        (
            "the database '{path}' cannot be written to at the moment (read-only); make it writable,"
            " then try again"
        ),
        "数据库“{path}”目前为只读，无法写入；请恢复可写后重试",
    ),
    "database-unreachable": (
        "the database '{path}' cannot be reached: {detail}; try again when it is back",
        "无法访问数据库“{path}”：{detail}；请在其恢复后重试",
    ),
    "database-failed": (
        (
            "the disk did not keep what was written to '{path}' ({detail}); nothing more is written:"
            " check the disk, then restart the server"
        ),
        "磁盘未能保存写入“{path}”的内容（{detail}）；已停止写入：请检查磁盘后重启服务器",
    ),
    "records-closed": (
        "the server is stopping; try again when it is back",
        "服务器正在停止；请在其恢复后重试",
    ),
    "record-conflict": (
        (
            "what is to be stored conflicts with what is stored already: {detail}; look at what is"
            " there, then send something that fits"
        ),
        "要保存的内容与已有内容冲突：{detail}；请先查看已有内容再重新提交",
    ),
    "record-too-large": (
        "a value is larger than the database can hold; make it smaller, or put it into a file",
        "数值或文本超出数据库的上限；请缩小，或写入文件",
    ),
    "key-file-open": (
        "the key file '{path}' can be read by others; make it yours alone: chmod 600",
        "密钥文件“{path}”可被他人读取；请执行 chmod 600 收回权限",
    ),
    "key-file-unreadable": (
        (
            "the key file '{path}' cannot be used: {detail}; put back the one that the database's"
            " secrets were encrypted with"
        ),
        "密钥文件“{path}”无法使用：{detail}；请恢复加密该数据库时所用的密钥文件",
    ),
    "key-file-wrong": (
        (
            "the secret of '{owner}' was not encrypted with the key in '{path}'; put back the key file"
            " that belongs to this database"
        ),
        "“{owner}”的私密信息并非用“{path}”中的密钥加密；请恢复与该数据库对应的密钥文件",
    ),
    "bind-open": (
        (
            "--host {host} would open the server to the network without TLS; give --tls-cert and"
            " --tls-key, or --insecure-bind if a proxy in front does TLS"
        ),
        (
            "--host {host} 会在没有 TLS 的情况下向网络开放服务器；请提供 --tls-cert 和 --tls-key，"
            "若前面有代理负责 TLS 则加 --insecure-bind"
        ),
    ),
    "bind-failed": (
        "{host}:{port} cannot be listened on: {detail}; give another --port (0 takes a free one)",
        "无法监听 {host}:{port}：{detail}；请更换 --port（0 表示任取空闲端口）",
    ),
    "setting-unknown": (
        "'{key}' in {source} is not a setting{hint}; `danlu config` lists them",
        "{source} 中的“{key}”不是设置项{hint}；可用 `danlu config` 查看",
    ),
    "setting-value": (
        "setting '{key}' in {source} is '{value}'; it must be {expected}",
        "{source} 中的设置项“{key}”的值为“{value}”；应为 {expected}",
    ),
    "setting-file": (
        "the settings file '{path}' cannot be read: {detail}",
        "无法读取设置文件“{path}”：{detail}",
    ),
    "extra-missing": (
        "'{name}' needs a part that is not installed; install it with: {install}",
        "“{name}”需要的组件尚未安装；请执行：{install}",
    ),
    "place-outside": (
        (
            "'{path}' lies outside the places that this engine gives to a task ({home} and {cache});"
            " choose a local_dir below /home/ma-user or /cache"
        ),
        (
            "“{path}”不在该引擎提供给任务的目录（{home} 和 {cache}）之内；请将 local_dir 设在"
            " /home/ma-user 或 /cache 之下"
        ),
    ),
    "place-taken": (
        "'{path}' is not a directory that only this user may write to; remove it",
        "“{path}”不是仅当前用户可写的目录；请将其删除",
    ),
    "engine-failed": (
        "the engine could not start the tasks: {detail}",
        "执行引擎无法启动任务：{detail}",
    ),
}
