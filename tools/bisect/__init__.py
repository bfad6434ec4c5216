"""`relayc bisect`: which pass, kernel or operator makes the results of a model differ from a reference, and the least model that shows it.

parts: what of a model can be compiled by itself; compiling: with which passes and schedules; search: the part, and what is wrong with it;
command: the command line and the files.
"""
