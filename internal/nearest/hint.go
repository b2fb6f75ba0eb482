package nearest

import "strings"

// Hint returns the hint for a name that does not exist: the known name that was probably meant, or
// all known names.
func Hint(name string, known []string) string {
	if near := Word(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 0 {
		return "there are none"
	}
	return "there are: " + strings.Join(known, ", ")
}
