package turns

import "testing"

// A stream and the whole answer are the same question, and no other member is left out. Spaces
// around the member make another question.
func TestFingerprint(t *testing.T) {
	whole := fingerprint([]byte(`{"model":"a","input":"x"}`))
	for body, same := range map[string]bool{
		`{"model":"a","input":"x","stream":true}`:                                     true,
		`{"stream":true,"model":"a","input":"x"}`:                                     true,
		`{"model":"a","stream":false,"input":"x"}`:                                    true,
		`{"model":"a","stream" : true , "stream_options":{"a":[1,2]},"input":"x"}`:    false,
		`{"model":"a","stream":true,"stream_options":{"a":["stream",2]},"input":"x"}`: true,
		`{"model":"a","input":"x","more":{"stream":true}}`:                            false,
		`{"model":"a","input":"\"stream\":true"}`:                                     false,
		`{"model":"a","input":"y","stream":true}`:                                     false,
		`{"model":"a","input":"x","stream":`:                                          false,
		`["stream"]`:                                                                  false,
		`"stream"`:                                                                    false,
	} {
		if got := fingerprint([]byte(body)) == whole; got != same {
			t.Errorf("%s: %v, want %v", body, got, same)
		}
	}
}
