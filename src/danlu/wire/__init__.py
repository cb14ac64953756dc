"""Public JSON and XML, translated to the model and back; one file a family."""
