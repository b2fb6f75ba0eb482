//go:build race

package tooltest

const underRace = true
