package fold

// mark_v1.go: the first stored form of a mark, which is only read.

import (
	"encoding/json"
	"fmt"
)

// markV1 is the first stored form of a Mark. Transcripts of before have it.
type markV1 struct {
	Version     int    `json:"v"`
	Tokens      int    `json:"t"`
	Bytes       int    `json:"b"`
	Folded      int    `json:"f"`
	Stubbed     int    `json:"s"`
	Edited      int    `json:"e"`
	Turn        int    `json:"u"`
	LimitBytes  int    `json:"l"`
	CutBytes    int    `json:"c"`
	RoomTokens  int    `json:"r"`
	Shown       int    `json:"q"`
	Unhelpful   int    `json:"h"`
	Notes       string `json:"n"`
	NotesAt     int    `json:"i"`
	NotesTo     int    `json:"o"`
	NotesFailed int    `json:"x"`
	Why         string `json:"y"`
}

// parseV1 reads the first stored form of a mark, and returns it in the present form.
func parseV1(data json.RawMessage) (Mark, error) {
	var v markV1
	err := json.Unmarshal(data, &v)
	if err == nil && v.Version != 1 {
		err = fmt.Errorf("version is %d, want 1 to %d", v.Version, markVersion)
	}
	if err != nil {
		return Mark{}, err
	}
	return Mark{
		Version:     briefVersion,
		Tokens:      v.Tokens,
		Bytes:       v.Bytes,
		Folded:      v.Folded,
		Stubbed:     v.Stubbed,
		Edited:      v.Edited,
		Turn:        v.Turn,
		LimitBytes:  v.LimitBytes,
		CutBytes:    v.CutBytes,
		RoomTokens:  v.RoomTokens,
		Shown:       v.Shown,
		Unhelpful:   v.Unhelpful,
		Notes:       v.Notes,
		NotesAt:     v.NotesAt,
		NotesTo:     v.NotesTo,
		NotesFailed: v.NotesFailed,
		Why:         v.Why,
	}, nil
}
