//go:build race

package pawl_test

const raceDetector = true
