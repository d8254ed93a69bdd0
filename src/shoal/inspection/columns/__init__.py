"""What each column is: its kind and shape, how identifying it is, and its role."""
