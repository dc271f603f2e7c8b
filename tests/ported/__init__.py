"""Programs for other libraries, which run here after changed imports, and with those libraries as they are."""
