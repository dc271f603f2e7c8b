"""The edge: what crosses from one revision to another, translated in one place.

`convert` compiles a converter for any pair of types; `rules` are the exceptions, by name; `revisions` says which
revisions there are and of which era.
"""
