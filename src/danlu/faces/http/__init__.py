"""The HTTP face: ModelArts' API, IAM, and Danlu's own extras."""
