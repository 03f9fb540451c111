"""Limiters: counters that several processes may share. A setting chooses one by name.

Two things are counted: requests of a client in windows of time, and money of a site in a day. Both are counted before
anything is done for them, in one atomic step each, so that no race admits more than there is room for, and a process
that is killed has counted too much and never too little. Money is whole microdollars: floats don't add up.
"""
