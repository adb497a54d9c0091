"""The service over HTTP: events posted in, released events pulled out, and a page that shows it live.

`server` has the server, the source and the sink; `_app` the routes; in `_queues` requests meet the service's threads.
"""
