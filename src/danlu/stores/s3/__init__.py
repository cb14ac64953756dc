"""Objects on any server that speaks S3: SeaweedFS, MinIO, Huawei OBS, AWS.

What such a server cannot promise is said in `S3Store.powers`: one that keeps keys as paths has
neither all keys nor their order, and none keeps an old version for a slow reader.
"""

from __future__ import annotations

from danlu.stores.s3.store import S3Store

__all__ = ["S3Store"]
