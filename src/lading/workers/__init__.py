"""Processes that work for this one: batches made ahead, other workers for those that died, an end to what hangs.

    prefetch   batches in their order, each worker's own made ahead of when they are due
    restart    when a worker was killed, another begins where it stood
    pool       processes that do a job along with this one
    child      how such a process is started, and asked
    watchdog   a time limit for every sample; deadline: for whoever works in steps; end_timer: for what hears nothing
    garbage    what is loaded already, out of the garbage collector's sight

No module here knows what a sample is but by its name.
"""
