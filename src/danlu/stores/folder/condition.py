"""What must hold of a key when its new version becomes visible."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.model.errors import Refused


@dataclass(frozen=True, slots=True)
class Condition:
    """`absent`: there is no object. `etag`: there is one with that etag."""

    absent: bool = False
    etag: str | None = None

    def check(self, bucket: str, key: str, etag: str | None) -> None:
        """Raise Refused (412) unless it holds of a key whose etag (None = no object) this is."""
        broken = ""
        if self.absent and etag is not None:
            broken = "if absent: it exists"
        elif self.etag is not None and etag != self.etag:
            found = f"it has {etag}" if etag is not None else "it does not exist"
            broken = f"if etag is {self.etag}: {found}"
        if broken:
            raise Refused("object-condition", http=412, bucket=bucket, key=key, condition=broken)


ALWAYS = Condition()
