"""OpenEnv: a sandbox behind its HTTP and WebSocket protocol, with snapshot and restore.

`server.create_app` serves one, `client.SandboxClient` talks to it, `messages` is what they say.
"""
