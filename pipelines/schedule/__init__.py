"""te -> tir: a schedule for each kernel; importing the package registers the specialised ones, those asked first first."""

# isort: off
from relayc.pipelines.schedule import attention_tiles as attention_tiles
from relayc.pipelines.schedule import attention_columns as attention_columns
from relayc.pipelines.schedule import attention_rows as attention_rows
from relayc.pipelines.schedule import amx as amx
from relayc.pipelines.schedule import dot as dot
from relayc.pipelines.schedule import roles as roles
from relayc.pipelines.schedule import channel_window as channel_window
from relayc.pipelines.schedule import tile_transform as tile_transform
from relayc.pipelines.schedule import window as window
