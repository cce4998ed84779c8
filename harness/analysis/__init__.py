"""What is made of finished runs: metrics, comparisons, explanations, reports and exports."""
