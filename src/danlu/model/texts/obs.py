"""Texts of the OBS gateway's errors."""

from __future__ import annotations

OBS_ERRORS: dict[str, tuple[str, str]] = {
    # who is asking
    "obs-no-credentials": (
        "the request is not signed; sign it with an access key of this server (OBS, AWS V2 or V4), or use a signed URL",
        "请求未签名；请使用本服务器的访问密钥签名（OBS、AWS V2 或 V4），或使用带签名的 URL",
    ),
    "obs-algorithm": (
        "the way of signing '{algorithm}' is not accepted; use OBS, AWS (V2) or AWS4-HMAC-SHA256",
        "不接受签名方式“{algorithm}”；请使用 OBS、AWS（V2）或 AWS4-HMAC-SHA256",
    ),
    "obs-authorization": (
        "the signature cannot be read: {detail}",
        "无法解析签名：{detail}",
    ),
    "obs-signature": (
        "the signature does not match the request; check the secret key of '{access_key}', and compare what your client signed with what had to be signed: {string_to_sign}",
        "签名与请求不符；请检查访问密钥“{access_key}”对应的私有密钥，并将客户端所签内容与应签内容比对：{string_to_sign}",
    ),
    "obs-chunk-signature": (
        "the signature of a chunk of the body does not match; what had to be signed is: {string_to_sign}",
        "请求体某一分块的签名不符；应签内容为：{string_to_sign}",
    ),
    "obs-header-unsigned": (
        "the header '{header}' must be sent and signed, or left out",
        "请求头“{header}”必须发送并签名，否则请将其移除",
    ),
    "obs-date": (
        "the date of the request is '{value}' and cannot be read; send Date, or the header that your signature has for it",
        "无法解析请求日期“{value}”；请发送 Date 或相应签名方式的日期头",
    ),
    "obs-skewed": (
        "the request was signed at '{value}', {off_s} s away from this server's clock ({server_time}); set the clock right (the window is {window_s} s)",
        "请求签名时间为“{value}”，与服务器时钟（{server_time}）相差 {off_s} 秒；请校准时钟（允许 {window_s} 秒）",
    ),
    "obs-expired": (
        "the signed URL was good until {ended} and it is {server_time} now; make a new one",
        "该签名 URL 的有效期至 {ended}，现在是 {server_time}；请重新生成",
    ),
    # buckets
    "obs-bucket-denied": (
        "bucket '{bucket}' belongs to another project; use a bucket of your own",
        "桶“{bucket}”属于其他项目；请使用自己的桶",
    ),
    "obs-bucket-owned": (
        "bucket '{bucket}' exists already and is yours; go on and use it",
        "桶“{bucket}”已存在且归您所有；可直接使用",
    ),
    "obs-bucket-region": (
        "buckets of this server are in the region '{own}', not in '{region}'; leave the location out or name that region",
        "本服务器的桶位于区域“{own}”，而非“{region}”；请省略位置或填写该区域",
    ),
    "obs-no-configuration": (
        "bucket '{bucket}' has no {name} configuration",
        "桶“{bucket}”没有 {name} 配置",
    ),
    # the shape of a request
    "obs-not-implemented": (
        "this server does not implement {what}; nothing was done",
        "本服务器不支持 {what}；未执行任何操作",
    ),
    "obs-method": (
        "{method} is not possible here; use one of {allowed}",
        "此处不支持 {method}；可使用 {allowed}",
    ),
    "obs-query": (
        "the query cannot be understood: {detail}",
        "无法解析查询参数：{detail}",
    ),
    "obs-xml": (
        "the XML of the request cannot be used: {detail}",
        "请求中的 XML 无法使用：{detail}",
    ),
    "obs-tag": (
        "the tags cannot be used: {detail}",
        "标签无法使用：{detail}",
    ),
    "obs-version": (
        "there is no version '{version}': one version of each object is kept, and its id is null",
        "不存在版本“{version}”：每个对象只保留一个版本，其 ID 为 null",
    ),
    "obs-copy-source": (
        "'{value}' is not the source of a copy; write /bucket/key, percent-encoded",
        "“{value}”不是合法的复制源；请写成经百分号编码的 /桶/键",
    ),
    "obs-copy-itself": (
        "'{key}' is copied onto itself and nothing of it changes; name another key, or replace its metadata (x-amz-metadata-directive: REPLACE)",
        "“{key}”被复制到自身且没有任何变化；请使用其他键，或替换其元数据（x-amz-metadata-directive: REPLACE）",
    ),
    # bodies
    "obs-length": (
        "the header '{header}' must say how long the content is",
        "必须用请求头“{header}”说明内容长度",
    ),
    "obs-incomplete": (
        "the body is not what was promised: {detail}; send it again",
        "请求体与声明不符：{detail}；请重新发送",
    ),
    "obs-chunk": (
        "the body is not valid aws-chunked: {detail}",
        "请求体不是合法的 aws-chunked 编码：{detail}",
    ),
    "obs-digest": (
        "{header} is '{value}', which cannot be such a digest; send it in base64",
        "{header} 的值“{value}”不是合法的摘要；请以 base64 发送",
    ),
    "obs-checksum": (
        "what arrived has another {name} than was promised ({found}, not {promised}); nothing was stored, send it again",
        "收到内容的 {name} 与声明不符（实际为 {found}，声明为 {promised}）；未保存，请重新发送",
    ),
    "obs-object-size": (
        "the parts hold {size} bytes together and {promised} were promised; list the parts, and send what is missing",
        "各段共 {size} 字节，与声明的 {promised} 字节不符；请列出已上传的段并补传缺少的段",
    ),
    "obs-payload": (
        "what arrived has another SHA-256 than was signed ({found}, not {signed}); nothing was stored",
        "收到内容的 SHA-256 与所签名的不符（实际为 {found}，所签为 {signed}）；未保存",
    ),
}
