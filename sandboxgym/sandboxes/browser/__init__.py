"""Web pages in a real Chromium that can be forked with their site.

What a reader finds where, from the bottom up:

- `cdp` one pipe to a browser; `chromium` the browser of this process; `profiles`, `contexts` its
  folder, its blank contexts; `loop` the one thread in which all of this runs
- `messages`, `sites` what pages ask and sites answer; `applications`, `folders`, `elsewhere` the
  kinds of sites; `hosting` a site at work
- `options` how pages see the world; `settle` virtual time and frames; `determinism` randomness,
  stamps, doors that are shut; `workers` kept in step; `intercept` every request, from the site or
  refused
- `tab`, `session` the tabs of one episode, and what is done to them
- `recorder`, `recording`, `snapshotting`, `fingerprint` what a moment came from, and how it is made
  again and compared; `understudy` ahead of demand
- `actions`, `acting`, `axtree`, `observation`, `episode`, `env` what an agent can do and see

Other packages of sandboxgym use `env.BrowserEnv`, `options.Options`, `sites` and `observation`.
"""
