"""Objects in a local folder: content in blob files, keys in an index per bucket.

```
root/<bucket>/index.db          SQLite: key -> blob, size, digests, metadata
root/<bucket>/blobs/<x>/<id>    content; <id> is random, <x> its first digit
root/<bucket>/incoming/<id>     a second name of content that no row is known to name yet
root/<bucket>/reserve           space kept back, so that deleting works on a full disk
```

No part of a key ever becomes part of a path. A blob is written once and never changed, so a
reader that has its file open keeps its version, and a copy is a hard link.
"""

from __future__ import annotations

from danlu.stores.folder.store import FolderStore

__all__ = ["FolderStore"]
