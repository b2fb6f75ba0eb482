package foreign

import "encoding/json"

// UnfitKey is the name, in the metadata of the end of a run, of the answer that did not fit the
// schema of the run: an Unfit. Servers of this project write it for their clients.
const UnfitKey = "pawl/unfit"

// Unfit is the last answer of a run, and why it does not fit.
type Unfit struct {
	Answer string   `json:"answer"`
	Faults []string `json:"faults"`
}

// UnfitIn returns the answer in the metadata of a result. nil means that there is none.
func UnfitIn(meta map[string]any) *Unfit {
	value, ok := meta[UnfitKey]
	if !ok {
		return nil
	}
	b, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	u := new(Unfit)
	if json.Unmarshal(b, u) != nil || len(u.Faults) == 0 {
		return nil
	}
	return u
}
