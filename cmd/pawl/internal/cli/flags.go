package cli

// Whole is a whole number on the command line. One below 0 is read like any other, so that whoever takes it can say what is wrong with it.
type Whole int
