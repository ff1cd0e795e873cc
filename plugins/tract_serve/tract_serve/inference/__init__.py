"""What requests ask for, whichever protocol they come by."""
