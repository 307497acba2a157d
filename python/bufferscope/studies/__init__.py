"""Questions that several runs answer: which queue, which length, and how engines or runs compare."""
