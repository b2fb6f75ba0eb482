package document

import "context"

// GuardPDF checks a PDF whose streams may unpack to inflate bytes.
func GuardPDF(data []byte, inflate int64) error {
	return guardPDF(context.Background(), data, inflate)
}

// Sentences returns the sentences into which prose is split.
func Sentences(text string) []string {
	var out []string
	for _, s := range sentences(text) {
		out = append(out, s.text)
	}
	return out
}
