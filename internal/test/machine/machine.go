// Package machine holds what tests ask of the operating system, for each system that the project
// builds on.
package machine
