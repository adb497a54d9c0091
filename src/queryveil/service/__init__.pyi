from queryveil.service.pipeline.service import Service as Service
from queryveil.service.pipeline.urls import find_address as find_address
from queryveil.service.pipeline.urls import open_sink as open_sink
from queryveil.service.pipeline.urls import open_source as open_source
from queryveil.service.pipeline.urls import open_store as open_store
from queryveil.service.settings import StreamSettings as StreamSettings
from queryveil.service.settings import Tables as Tables
from queryveil.service.settings import read_or_make_key as read_or_make_key
from queryveil.service.stores.profiles import ProfileDatabase as ProfileDatabase

__all__: list[str]
