"""The live web page: reads run folders and nothing else, writes nothing, and imports no PyTorch.

`runs` finds runs and the state of each, `series` thins a metric of any length to few points, `updates` reads the
recorded updates, `live` sends every viewer what is new, and `server` answers requests that `safety` has let through.
"""
