//go:build race

package data_test

const underRace = true
