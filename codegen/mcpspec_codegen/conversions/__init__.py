"""Write the functions that convert between a modern revision and an older one, one module for each pair.

A module has two classes. `Upgrade` takes exact types of the older revision, `Downgrade` types of the modern one. Each
has a method for every type that needs one, called like it. The classes of a revision derive from those of the next
newer one, and have only the methods that differ. So a diff of these modules shows what an older peer loses.
"""
