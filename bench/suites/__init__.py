"""What is measured: each module has `tables(plan)`, which gives the comparisons of one kind."""
