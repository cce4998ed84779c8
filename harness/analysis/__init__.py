"""Results from finished runs: metrics, comparisons, explanations, reports and exports."""
