package document

// Sentences are those that prose is cut into.
func Sentences(text string) []string {
	var out []string
	for _, s := range sentences(text) {
		out = append(out, s.text)
	}
	return out
}
