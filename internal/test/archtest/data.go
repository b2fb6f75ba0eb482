package archtest

import (
	"fmt"
	"regexp"
	"strings"
)

// door is the only package that may know where the recorded data is. A test that finds the data in
// another way fails, in place of being skipped, in a clone that has nothing next to it.
const door = "internal/test/corpora"

// waysToData are the ways around the door. They are joined from halves, so that this file follows
// its own rule.
var waysToData = regexp.MustCompile(`PAWL_COR` + `PORA|corpora ab` + `sent|\.\./shar` + `ed\b|"\.\.", *"shar` + `ed"|shar` + `ed/data`)

// checkData returns the lines of a Go file that find the recorded data without the door, or skip a
// test in the door's words.
func checkData(path, content string) []string {
	if strings.HasPrefix(path, door+"/") {
		return nil
	}
	var bad []string
	n := 0
	for line := range strings.Lines(content) {
		n++
		if m := waysToData.FindString(line); m != "" {
			bad = append(bad, fmt.Sprintf("%s:%d: %q: the recorded data is absent where most people run the tests; "+
				"open it with package %s, which skips the test there", path, n, m, door))
		}
	}
	return bad
}
