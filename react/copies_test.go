package react

import (
	"reflect"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// The request to the model inside has every field of the request that was made, or puts it into
// words.
func TestInnerRequestHasEveryField(t *testing.T) {
	copied := []string{"Key", "Model", "Settings", "Whole", "Background"}
	inWords := []string{"Messages", "Tools", "Choice", "Output"} // the prompt and the history

	// They count messages that are not sent. Replies are sent as text, without reasoning and
	// without a provider's summary.
	unused := []string{"Turn", "Edited", "Summarize"}

	of := reflect.TypeFor[llm.Request]()
	for i := range of.NumField() {
		if name := of.Field(i).Name; !slices.Contains(slices.Concat(copied, inWords, unused), name) {
			t.Errorf("llm.Request.%s is new: does Model.request use it?", name)
		}
	}
	m := New(nil, nil)
	got, err := m.request(&llm.Request{Key: "k", Model: "m", Settings: llm.Settings{MaxTokens: 1}, Whole: true,
		Background: new(llm.Opaque)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range copied {
		if reflect.ValueOf(*got).FieldByName(name).IsZero() {
			t.Errorf("llm.Request.%s is not copied", name)
		}
	}
}
