"""The fast performer: the page's update in C++ behind a plain C interface, bound to the page by tests.

It owns no state: parameters, targets and what Adam remembers are the page's own tensors, so either engine can continue
where the other stopped. `library.py` finds what was compiled, `engine.py` calls it, `source/` is what is compiled.
"""
