"""Texts of errors about who is asking, and about the server itself."""

from __future__ import annotations

SERVER_ERRORS: dict[str, tuple[str, str]] = {
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
    "key-for-storage": (
        "the access key '{access_key}' is a job's and opens the storage only; sign with a user's key",
        "访问密钥“{access_key}”属于作业，只能访问存储；请使用用户的密钥签名",
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
        (
            "the disk that holds '{path}' is full ({detail}): {free_bytes} bytes are free and at least"
            " {needed_bytes} are needed; free some space, then try again"
        ),
        (
            "“{path}”所在的磁盘已满（{detail}）：可用 {free_bytes} 字节，至少需要 {needed_bytes} 字节；"
            "请释放空间后重试"
        ),
    ),
    "inodes-full": (
        (
            "the disk that holds '{path}' takes no more files ({detail}): all of its inodes are in"
            " use; delete files there, large or small, then try again"
        ),
        (
            "“{path}”所在的磁盘无法再创建文件（{detail}）：inode 已用尽；请删除其中的文件（大小不限）后"
            "重试"
        ),
    ),
    "spool-full": (
        (
            "there is no room in '{path}' to unpack the archive ({detail}; up to {needed_bytes} bytes"
            " are needed); free some space there, or point the server's TMPDIR to a larger disk"
        ),
        (
            "“{path}”没有足够空间解开归档（{detail}；最多需要 {needed_bytes} 字节）；请在其中释放空间，"
            "或将服务器的 TMPDIR 指向更大的磁盘"
        ),
    ),
    "database-full": (
        (
            "the database server has no room left for '{path}' ({detail}); free some space on its"
            " disk, then try again"
        ),
        "数据库服务器已没有空间存放“{path}”（{detail}）；请释放其磁盘空间后重试",
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
    "no-node-answers": (
        "no node answers at the moment, so it is not known what a job could get; try again",
        "目前没有节点响应，无法得知作业可用的规格；请稍后重试",
    ),
    "database-other-server": (
        (
            "the database {path} is in use by another server ({holder}); stop that one, or give this"
            " one a database or schema of its own"
        ),
        "数据库 {path} 正被另一个服务器（{holder}）使用；请停止它，或为本服务器指定单独的数据库或 schema",
    ),
    "data-dir-unusable": (
        (
            "the data directory '{path}' cannot be used: {detail}; make it writable for this user, or"
            " give another --data"
        ),
        "无法使用数据目录“{path}”：{detail}；请使其对当前用户可写，或更换 --data",
    ),
    "database-newer": (
        (
            "the database '{path}' was written by Danlu {newer} (schema {found}), and this is Danlu"
            " {version}, which knows schemas up to {known}; use that version, or restore a backup from"
            " before the upgrade (`danlu restore`)"
        ),
        (
            "数据库“{path}”由 Danlu {newer} 写入（结构版本 {found}），当前程序为 Danlu {version}（最高支持"
            " {known}）；请使用该版本，或恢复升级前的备份（`danlu restore`）"
        ),
    ),
    "database-newer-kept": (
        (
            "the database '{path}' was written by Danlu {newer} (schema {found}), and this is Danlu"
            " {version}, which knows schemas up to {known}; use that version, or go back to before the"
            " upgrade: with `danlu restore`, or with the file that the upgrade kept, {kept} (what was"
            " recorded since is lost)"
        ),
        (
            "数据库“{path}”由 Danlu {newer} 写入（结构版本 {found}），当前程序为 Danlu {version}（最高支持"
            " {known}）；请使用该版本，或回到升级之前：用 `danlu restore`，或用升级时保留的文件 {kept}"
            "（此后的记录会丢失）"
        ),
    ),
    "objects-newer": (
        (
            "the object index '{path}' was written by a newer Danlu (format {found}; this program knows"
            " up to {known}); use that version"
        ),
        (
            "对象索引“{path}”由更新版本的 Danlu 写入（格式 {found}，本程序最高支持 {known}）；请使用该版本"
        ),
    ),
    "database-in-use": (
        (
            "the database '{path}' is in use by another process, so its schema cannot be changed; stop"
            " that one, then start again"
        ),
        "数据库“{path}”正被其他进程使用，无法升级结构；请停止该进程后重新启动",
    ),
    "migration-room": (
        (
            "the database '{path}' is to be upgraded on a copy, which needs {needed_bytes} bytes beside"
            " it; {free_bytes} are free: free some space, then start again (nothing was changed)"
        ),
        (
            "升级数据库“{path}”需先在其旁边建立副本，需要 {needed_bytes} 字节，可用 {free_bytes} 字节；"
            "请释放空间后重新启动（未做任何改动）"
        ),
    ),
    "migration-failed": (
        (
            "the upgraded copy of the database '{path}' is not right ({detail}); the database is as it"
            " was: use the version of Danlu that you had, and report this"
        ),
        (
            "数据库“{path}”升级后的副本不正确（{detail}）；原数据库未改动：请继续使用原版本的 Danlu，并报告"
            "该问题"
        ),
    ),
    "database-damaged": (
        (
            "the database '{path}' is damaged: {detail}; put a backup in its place with `danlu restore"
            " BACKUP --force` (what is there now is kept aside)"
        ),
        (
            "数据库“{path}”已损坏：{detail}；请用 `danlu restore BACKUP --force` 恢复备份（现有内容会另行"
            "保留）"
        ),
    ),
    "database-foreign": (
        "'{path}' is a database of another program; give a file of its own to Danlu",
        "“{path}”是其他程序的数据库；请为 Danlu 指定单独的文件",
    ),
    "database-network": (
        (
            "the database '{path}' lies on {mount}, a file system of type {kind}: locks and shared"
            " memory do not hold there, and the database would be damaged; put the data directory on"
            " a disk of this machine (--data), or the records into PostgreSQL (setting database);"
            " allow_network_disk = true takes the risk"
        ),
        (
            "数据库“{path}”位于 {mount}，其文件系统类型为 {kind}：锁和共享内存在其上不可靠，会损坏数据库；请"
            "将数据目录放到本机磁盘（--data），或将记录存入 PostgreSQL（设置项 database）；若愿承担风险，可设"
            " allow_network_disk = true"
        ),
    ),
    "database-behind": (
        (
            "the database '{path}' has events up to {found}, and had come to {expected} before: its log"
            " ('{path}-wal') is missing, or it is an older copy; put the right files back, or a backup"
            " (`danlu restore`); if what is there is what you want, remove '{witness}'"
        ),
        (
            "数据库“{path}”只有到 {found} 为止的事件，而此前已到 {expected}：其日志（“{path}-wal”）缺失，或文件"
            "是旧副本；请放回正确的文件，或恢复备份（`danlu restore`）；若确认使用现有内容，请删除“{witness}”"
        ),
    ),
    "database-other": (
        (
            "what '{path}' holds is of another server: a database or a log ('{path}-wal') of another"
            " one was copied there; put the right files back, or a backup (`danlu restore`); if what"
            " is there is what you want, remove '{witness}'"
        ),
        (
            "“{path}”中的内容属于另一台服务器：其他数据库或其日志（“{path}-wal”）被复制到了这里；请放回正确的"
            "文件，或恢复备份（`danlu restore`）；若确认使用现有内容，请删除“{witness}”"
        ),
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
    "backup-exists": (
        "'{path}' exists already; name a new directory for the backup",
        "“{path}”已存在；请为备份指定一个新目录",
    ),
    "backup-inside": (
        (
            "'{path}' lies in the data directory '{data}', and would be lost with it; name a directory"
            " elsewhere, best on another disk"
        ),
        "“{path}”位于数据目录“{data}”之内，会随其一同丢失；请指定其他位置，最好在另一块磁盘上",
    ),
    "backup-nothing": (
        "there is no database '{path}' to back up; give the server's --data",
        "没有可备份的数据库“{path}”；请用 --data 指定服务器的数据目录",
    ),
    "backup-failed": (
        "'{path}' cannot be read or written: {detail}; nothing was changed",
        "无法读取或写入“{path}”：{detail}；未做任何改动",
    ),
    "backup-other-database": (
        (
            "the records are in {database}, which has its own tools: back them up with `pg_dump"
            " --format=custom --file=danlu.dump URL` (or by copying the file, for SQLite elsewhere),"
            " and keep secret.key of the data directory with it"
        ),
        (
            "记录存放在 {database}，请使用其自带工具备份：`pg_dump --format=custom --file=danlu.dump URL`"
            "（若为其他位置的 SQLite，则复制该文件），并一并保存数据目录中的 secret.key"
        ),
    ),
    "restore-other-database": (
        (
            "the records are in {database}, which has its own tools: restore them with `pg_restore"
            " --clean --dbname=URL danlu.dump` while the server is stopped, and put secret.key back"
            " into the data directory"
        ),
        (
            "记录存放在 {database}，请使用其自带工具恢复：停止服务器后执行 `pg_restore --clean"
            " --dbname=URL danlu.dump`，并将 secret.key 放回数据目录"
        ),
    ),
    "backup-unreadable": (
        "'{path}' is not the manifest of a Danlu backup: {detail}",
        "“{path}”不是 Danlu 备份的清单：{detail}",
    ),
    "backup-damaged": (
        "'{path}' of the backup is not what was backed up: {detail}; use another backup",
        "备份中的“{path}”与备份时不符：{detail}；请使用其他备份",
    ),
    "backup-newer": (
        (
            "the backup '{path}' was made by Danlu {version} (schema {found}; this program knows up to"
            " {known}); restore it with that version"
        ),
        (
            "备份“{path}”由 Danlu {version} 创建（结构版本 {found}，本程序最高支持 {known}）；请使用该版本"
            "恢复"
        ),
    ),
    "backup-format": (
        (
            "the backup '{path}' was made by Danlu {version} in format {found}, and this program reads"
            " format {known}; restore it with that version"
        ),
        (
            "备份“{path}”由 Danlu {version} 以格式 {found} 创建，本程序读取格式 {known}；请使用该版本恢复"
        ),
    ),
    "restore-occupied": (
        (
            "there are records in '{path}' already; --force puts the backup in their place and keeps"
            " them aside"
        ),
        "“{path}”中已有记录；使用 --force 可用备份替换，原有内容会另行保留",
    ),
    "restore-key": (
        (
            "the backup was made without its key, and '{path}' is not there; put the key file of that"
            " server there first"
        ),
        "该备份不含密钥，且“{path}”不存在；请先将原服务器的密钥文件放到该位置",
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
    "kernel-too-old": (
        "the process engine needs Linux 5.3 or later (pidfd_open) and this is {release}: {detail}",
        "进程引擎需要 Linux 5.3 或更高版本（pidfd_open），当前为 {release}：{detail}",
    ),
    "image-unnamed": (
        (
            "{field} is missing: jobs of this server run in containers; name an image, such as"
            " registry.example.com/team/torch:2.8, or set container_image for all"
        ),
        (
            "缺少 {field}：该服务器的作业在容器中运行；请指定镜像，例如"
            " registry.example.com/team/torch:2.8，或为全部作业设置 container_image"
        ),
    ),
    "path-unmountable": (
        (
            "'{path}' cannot be mounted into a container: its name has a comma, a quote or a line end;"
            " rename it or give a link without them"
        ),
        "“{path}”无法挂载到容器中：名称含有逗号、引号或换行；请重命名，或使用不含这些字符的链接",
    ),
    "container-runtime": (
        (
            "no container runtime answers at '{socket}' ({detail}); start it (systemctl start"
            " podman.socket, or docker), or name another socket with container_socket"
        ),
        (
            "“{socket}”处没有容器运行时应答（{detail}）；请启动它（systemctl start podman.socket，或"
            " docker），或用 container_socket 指定其他套接字"
        ),
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
