"""Texts of errors: what was wrong, where, and what to do next."""

from __future__ import annotations

from danlu.model.texts.container_images import CONTAINER_IMAGE_ERRORS
from danlu.model.texts.execute import EXEC_ERRORS
from danlu.model.texts.image_errors import IMAGE_ERRORS
from danlu.model.texts.lab import LAB_ERRORS
from danlu.model.texts.notebooks import NOTEBOOK_ERRORS
from danlu.model.texts.object_errors import OBJECT_ERRORS
from danlu.model.texts.server_errors import SERVER_ERRORS
from danlu.model.texts.ssh import SSH_ERRORS

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
    "attempt-missing": (
        "job '{job}' has no attempt {attempt}; it has had {count} (danlu show {job})",
        "作业“{job}”没有第 {attempt} 次尝试；至今共 {count} 次（danlu show {job}）",
    ),
    "job-live": (
        "job '{job}' is {state}; stop it first (`danlu stop {job}`), then delete it",
        "作业“{job}”处于 {state} 状态；请先停止（`danlu stop {job}`）再删除",
    ),
    "job-final": (
        "job '{job}' has already ended ({state}); there is nothing to stop",
        "作业“{job}”已经结束（{state}），无需停止",
    ),
    "job-not-running": (
        "job '{job}' does not run ({state}); only a running job can lose its place",
        "作业“{job}”不在运行（{state}）；只能收回运行中作业的资源",
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
    "flavor-never-fits": (
        (
            "{field} is '{value}', which needs {needs} on each of {nodes} node(s); {lacks}; no flavor"
            " fits so often: ask for fewer nodes"
        ),
        (
            "字段 {field} 的规格“{value}”在 {nodes} 个节点上各需要 {needs}；{lacks}；没有规格能放下"
            "这么多，请减少节点数"
        ),
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
    "isolation-missing": (
        (
            "the job is to be isolated in full ({field}), and this server cannot do that: {missing}"
            " missing; danlu doctor says what to do, or leave it out and run without"
        ),
        (
            "作业要求完全隔离（{field}），但本服务器无法做到：缺少 {missing}；处理办法见 danlu doctor，"
            "也可去掉该要求直接运行"
        ),
    ),
    "bucket-denied": (
        (
            "{field} is '{value}', and bucket '{bucket}' belongs to another project; name a place in a"
            " bucket of your own (`danlu obs ls` lists them)"
        ),
        "{field} 为“{value}”，而桶“{bucket}”属于其他项目；请使用自己的桶（`danlu obs ls` 可列出）",
    ),
    "path-unwritable": (
        (
            "{field} is '{value}', and the server's user cannot write to {path}; name a directory"
            " that this user may write to, or change its owner or mode"
        ),
        (
            "字段 {field} 的值为“{value}”，而服务器的用户无法写入 {path}；请改用该用户可写的目录，"
            "或修改其属主或权限"
        ),
    ),
    "path-closed": (
        (
            "{field} is '{value}', which no job may be given: {closed} is there, lies below it, or"
            " holds it; name a directory apart from that"
        ),
        (
            "字段 {field} 的值“{value}”不能交给作业：它就是 {closed}，或包含它，或位于其中；"
            "请改用与之无关的目录"
        ),
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
    **IMAGE_ERRORS,
    **CONTAINER_IMAGE_ERRORS,
    **NOTEBOOK_ERRORS,
    **LAB_ERRORS,
    **OBJECT_ERRORS,
    **SERVER_ERRORS,
    **EXEC_ERRORS,
    **SSH_ERRORS,
}
