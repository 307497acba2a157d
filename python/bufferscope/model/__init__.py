"""What is tested: experiments and their catalogue, scenarios, overrides, and the names that files may use."""
