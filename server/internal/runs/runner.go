package runs

import (
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/server/api"
)

// event decodes an entry. It returns an error for an entry that says why the run could not
// continue.
func (e entry) event() (ev pawl.Event, err error) {
	if e.Kind == kindError {
		var f struct{ Error api.Error }
		if err := json.Unmarshal(e.Data, &f); err != nil {
			return ev, err
		}
		return ev, Fault(f.Error.Code, f.Error.Message, f.Error.Hint)
	}
	return ev, json.Unmarshal(e.Data, &ev)
}
