//go:build !race

package file_test

const underRace = false
