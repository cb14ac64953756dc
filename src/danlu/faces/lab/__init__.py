"""JupyterLab in the browser: each notebook on an origin of its own, on the API's port."""
