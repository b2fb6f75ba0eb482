package durable

import (
	"reflect"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// The digest of a request's form covers every field of a request that a provider could see. A field
// that is added to llm.Request must be added to the digest, or to the list of what has another
// record.
func TestRequestDigestHasEveryField(t *testing.T) {
	inDigest := []string{"Model", "Choice", "Output", "Settings"}
	// the key of the record, digests of their own, never sent and made of the messages, a record of
	// its own
	elsewhere := []string{"Key", "Messages", "Tools", "Whole", "Turn", "Edited", "Summarize", "Background"}
	of := reflect.TypeFor[llm.Request]()
	for i := range of.NumField() {
		if name := of.Field(i).Name; !slices.Contains(inDigest, name) && !slices.Contains(elsewhere, name) {
			t.Errorf("llm.Request.%s is new: does model.go record it?", name)
		}
	}
}
