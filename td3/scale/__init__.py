"""Runs on other machines: a node trains, and what is new comes home, so that no shared disk is needed.

Ray finds the nodes and starts a `Runner` for each run (`rays.py`, the only module that imports it). All else works with
anything that has a runner's methods: `remote.py` places a run, takes in what it sends, and places it again when its
node is lost.
"""
