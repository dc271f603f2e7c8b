"""Verification of access tokens: signed ones (JWT), opaque ones that the authorization server looks up, and proofs.

https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#token-handling
"""
