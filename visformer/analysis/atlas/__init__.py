"""What every head does over a whole corpus: small sums that are added up text by text and merged in any order."""
