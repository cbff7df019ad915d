"""The live web page: reads run folders and nothing else, writes nothing, and imports no PyTorch.

`runs` finds runs and tells the state of each, `series` draws a metric of any length with few points, `updates` reads
the recorded updates, `live` tells every viewer what is new, and `server` answers, after `safety` has looked.
"""
