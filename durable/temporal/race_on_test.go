//go:build race

package temporal

const raceDetector = true
