// Package misuse has a test of 71 mistakes in programs that use pawl. Each mistake has an error
// that says what would be right, or does what the documentation of the name says.
package misuse
