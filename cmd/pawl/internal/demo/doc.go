// Package demo holds the command demo: an agent that reads data files, adds them up and writes a
// report. Its model is a script behind a provider simulator; everything else is real.
package demo
