"""Objects in a local folder: content in blob files, keys in an index per bucket.

```
root/<bucket>/index.db          SQLite: key -> blob, size, digests, metadata
root/<bucket>/incoming/<id>     content that is being written, or whose index row is not sure
root/<bucket>/blobs/<x>/<id>    content; <id> is random, <x> its first digit
```

No part of a key ever becomes part of a path. A blob is written once and never changed, so a
reader that has its file open keeps its version, and a copy is a hard link.
"""

from __future__ import annotations

from danlu.stores.folder.store import FolderStore

__all__ = ["FolderStore"]
