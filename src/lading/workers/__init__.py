"""Processes that work for this one. Neither module knows what a sample is.

prefetch   batches in their order, made ahead of when they are due by workers that are replaced when they die or hang
pool       a job done by several processes
"""
