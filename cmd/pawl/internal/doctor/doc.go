// Package doctor holds the command doctor, which examines this machine: sandbox, keys, models,
// database, and files with agents. An examination collects findings and changes nothing.
package doctor
