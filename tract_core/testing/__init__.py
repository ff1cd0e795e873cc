"""What plugins test themselves with: cases, tolerances, and the conformance kit."""
