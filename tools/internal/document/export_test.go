package document

import "context"

// GuardPDF looks through a PDF whose streams may unpack to inflate bytes.
func GuardPDF(data []byte, inflate int64) error {
	return guardPDF(context.Background(), data, inflate)
}

// Sentences are those that prose is cut into.
func Sentences(text string) []string {
	var out []string
	for _, s := range sentences(text) {
		out = append(out, s.text)
	}
	return out
}
