"""The contenders: one small file for each."""
