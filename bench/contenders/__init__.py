"""The contenders, one small file each. Most are scripts, which run in a process of their own."""
