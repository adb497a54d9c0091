"""The service over HTTP: events posted in, released events pulled out, and a page that shows it live.

`server` listens, `app` has the routes, `intake` and `outlet` are where requests meet the service's threads.
"""

__all__: list[str] = []
