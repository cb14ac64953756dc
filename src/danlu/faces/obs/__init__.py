"""The OBS gateway: the objects of the platform, as OBS' and S3's own clients speak of them."""
