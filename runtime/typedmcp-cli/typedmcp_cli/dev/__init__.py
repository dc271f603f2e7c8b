"""The page of `typedmcp dev`: a server in the browser, with every message that it sends and receives.

`inspector` holds the session with the server, `events` what the page is told, `app` is the web application, and
`access` decides who may use it. The files of the page are in `static`.
"""
