"""Array types and checks, linear algebra and compiled loops that several rooms need."""
