"""A trained policy as one file for elsewhere: an ONNX graph, a C file, a JavaScript file.

`description` turns an agent into a `Graph`, a short list of operations with their arrays. Each writer writes that list
in its own language, `numpy_policy` performs it, and `parity` compares the file with the agent before it is kept.
"""
