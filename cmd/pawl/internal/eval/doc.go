// Package eval holds the command eval, which runs suites of evaluations. The public package eval
// does the work; this package reads flags, prints and sets the exit status.
package eval
