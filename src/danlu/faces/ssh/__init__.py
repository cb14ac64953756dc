"""The door: SSH to notebooks and jobs through one port of the server's."""
