"""Texts of errors about buckets and objects, and about where they are kept."""

from __future__ import annotations

OBJECT_ERRORS: dict[str, tuple[str, str]] = {
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
    "object-header": (
        "an object keeps no header '{name}'; use metadata for it, or one of {known}",
        "对象不保存请求头“{name}”；请改用元数据，或使用以下之一：{known}",
    ),
    "object-position": (
        (
            "object '{key}' in bucket '{bucket}' holds {size} bytes, so nothing can be appended at"
            " position {position}; append at {size}"
        ),
        "桶“{bucket}”中的对象“{key}”有 {size} 字节，不能在位置 {position} 追加；请从 {size} 处追加",
    ),
    "no-such-upload": (
        (
            "there is no upload '{id}' to object '{key}' in bucket '{bucket}': it is complete, aborted"
            " or was never begun; begin a new one"
        ),
        "桶“{bucket}”中没有对象“{key}”的上传任务“{id}”：已完成、已取消或从未开始；请重新发起",
    ),
    "upload-part-number": (
        "{number} is not the number of a part; parts are numbered from 1 to {limit}",
        "{number} 不是合法的段号；段号为 1 至 {limit}",
    ),
    "upload-part": (
        (
            "part {number} with etag '{etag}' was not uploaded (found: {found}); upload it again, or"
            " list the parts"
        ),
        "未上传 ETag 为“{etag}”的第 {number} 段（现有：{found}）；请重新上传该段，或先列出已上传的段",
    ),
    "upload-part-small": (
        (
            "a part of the upload to object '{key}' is too small for the S3 server that keeps it: all"
            " but the last must have 5 MiB or more; upload it again in larger parts"
        ),
        "对象“{key}”的某一段小于其所在 S3 服务器的下限：除最后一段外，每段至少 5 MiB；请以更大的分段重新上传",
    ),
    "upload-order": (
        "part {number} is named after part {last}; name the parts in rising order, each once",
        "第 {number} 段列在第 {last} 段之后；请按段号升序列出，每段一次",
    ),
    "upload-empty": (
        "an upload is completed with at least one part; name the parts, or put an empty object",
        "完成上传至少需要一段；请列出各段，或直接上传空对象",
    ),
    "upload-changed": (
        (
            "the parts of upload '{upload}' changed while it was being completed; list the parts and"
            " complete it again"
        ),
        "上传任务“{upload}”的段在合并期间发生了变化；请重新列出各段后再次完成",
    ),
    "object-damaged": (
        "object '{key}' in bucket '{bucket}' is damaged: {detail}",
        "桶“{bucket}”中的对象“{key}”已损坏：{detail}",
    ),
    "object-changed": (
        (
            "object '{key}' in bucket '{bucket}' was replaced while it was being read (at byte {at});"
            " read it again from the beginning"
        ),
        "桶“{bucket}”中的对象“{key}”在读取期间（第 {at} 字节处）被替换；请从头重新读取",
    ),
    # directories as buckets
    "plain-bucket": (
        "'{value}' registers no directory as a bucket; write name=/path or name=/path:rw, each name once",
        "“{value}”不是有效的目录登记；请写成 桶名=/路径 或 桶名=/路径:rw，桶名不得重复",
    ),
    "plain-directory": (
        "'{value}' registers '{path}', which is not a directory; write an absolute path that exists",
        "“{value}”登记的“{path}”不是目录；请填写已存在目录的绝对路径",
    ),
    "plain-key": (
        (
            "bucket '{bucket}' is a directory, and '{key}' cannot be the path of a file in it; use"
            " names of at most 255 bytes, none of them empty, '.' or '..'"
        ),
        (
            "桶“{bucket}”是一个目录，“{key}”不能作为其中文件的路径；每一级名称至多 255 字节，且不得为空、“.”或"
            "“..”"
        ),
    ),
    "plain-folder": (
        "'{key}' in bucket '{bucket}' is a folder and holds no content; leave the last '/' out",
        "桶“{bucket}”中的“{key}”是文件夹，不能有内容；请去掉末尾的“/”",
    ),
    "plain-place": (
        (
            "'{key}' cannot be used in bucket '{bucket}', a directory: a file, a folder or a link is in"
            " its way; look at what lies there"
        ),
        "桶“{bucket}”是一个目录，“{key}”的位置上已有文件、文件夹或链接；请检查该处内容",
    ),
    "bucket-registered": (
        "bucket '{bucket}' is a registered directory; take it out of the setting directories instead",
        "桶“{bucket}”是登记的目录；请改为从设置项 directories 中移除",
    ),
    "bucket-read-only": (
        "bucket '{bucket}' is the directory '{path}', registered to be read; register it with :rw to write",
        "桶“{bucket}”是只读登记的目录“{path}”；如需写入，请以 :rw 登记",
    ),
    "bucket-plain": (
        "bucket '{bucket}' is a directory: it takes files, no appends, renames or tags",
        "桶“{bucket}”是一个目录：只接受文件，不支持追加、重命名或标签",
    ),
    # S3 servers
    "s3-endpoint": (
        "'{value}' is not the address of an S3 server; write http://host:port or https://host",
        "“{value}”不是 S3 服务器的地址；请写成 http://主机:端口 或 https://主机",
    ),
    "s3-buckets": (
        "'{value}' names no bucket there for one here; write ours=theirs, each bucket once",
        "“{value}”不是桶名映射；请写成 本地桶名=远端桶名，每个桶一次",
    ),
    "s3-keys": (
        (
            "the file of S3 keys '{path}' cannot be used ({detail}); it is TOML with access_key and"
            " secret_key"
        ),
        "S3 密钥文件“{path}”无法使用（{detail}）；应为含 access_key 和 secret_key 的 TOML 文件",
    ),
    "s3-keys-open": (
        "others may read the file of S3 keys '{path}'; close it with: chmod 600 '{path}'",
        "S3 密钥文件“{path}”可被他人读取；请执行：chmod 600 '{path}'",
    ),
    "s3-key": (
        (
            "the S3 server ({server}) keeps keys as paths and cannot keep '{key}'; use a key without"
            " empty, '.' or '..' parts, each of at most 255 bytes"
        ),
        (
            "S3 服务器（{server}）以路径形式保存对象键，无法保存“{key}”；请避免空的、“.”或“..”部分，"
            "且每部分不超过 255 字节"
        ),
    ),
    "s3-folder": (
        "the S3 server ({server}) makes a folder of '{key}' and drops content; leave the last '/' out",
        "S3 服务器（{server}）会把“{key}”当作文件夹并丢弃内容；请去掉末尾的“/”",
    ),
    "s3-unavailable": (
        (
            "the S3 server {endpoint} did not answer as it should in {tries} tries ({detail}); check"
            " that it runs and is reachable, or try again later"
        ),
        "S3 服务器 {endpoint} 在 {tries} 次尝试中均未正常应答（{detail}）；请检查其是否运行且可达，或稍后重试",
    ),
    "s3-denied": (
        "the S3 server {endpoint} refuses the keys of this server ({detail}); check keys and rights there",
        "S3 服务器 {endpoint} 拒绝了本服务器的密钥（{detail}）；请检查密钥及其权限",
    ),
    "s3-full": (
        "the S3 server {endpoint} has no room ({detail}); free some there, or raise the quota",
        "S3 服务器 {endpoint} 空间不足（{detail}）；请清理空间或提高配额",
    ),
    "s3-refused": (
        "the S3 server refuses '{key}' in bucket '{bucket}': {detail}",
        "S3 服务器拒绝了桶“{bucket}”中的“{key}”：{detail}",
    ),
    "s3-answer": (
        "the S3 server answers in a way that S3 does not know: {detail}; check that the endpoint is one",
        "S3 服务器的应答不符合 S3 协议：{detail}；请检查该地址是否为 S3 服务",
    ),
}
