"""A benchmark that others can enter: named tasks that are fixed by sums, scores, and what checks them."""
