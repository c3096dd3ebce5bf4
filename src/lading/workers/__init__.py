"""Processes that work for this one: batches made ahead, other workers for those that died, an end to what hangs.

    prefetch   batches in their order, each worker's own made ahead of when they are due
    restart    when a worker was killed, another begins where it stood
    pool       a job done by several processes
    watchdog   a time limit for every sample; deadline: for whoever works in steps; end_timer: for what hears nothing

No module here knows what a sample is but by its name.
"""
