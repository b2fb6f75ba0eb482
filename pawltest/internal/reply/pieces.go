package reply

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// partialArgs cuts the arguments of a call into the pieces that Gemini streams on request
// (streamFunctionCallArguments): one value a piece, with its path; strings in two pieces, the
// second of which is empty. ok is false for arguments without such a form: empty lists and objects,
// and names that a path would have to quote. Such arguments are sent whole.
func partialArgs(args string) (pieces []wire.Object, ok bool) {
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, false
	}
	return cutValues(dec, "$", false, nil)
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// cutValues cuts the content of the list or object that dec has opened at path.
func cutValues(dec *json.Decoder, path string, inList bool, pieces []wire.Object) ([]wire.Object, bool) {
	n := 0
	for ; dec.More(); n++ {
		at := fmt.Sprintf("%s[%d]", path, n)
		if !inList {
			key, err := dec.Token()
			if err != nil || !plainKey.MatchString(key.(string)) {
				return nil, false
			}
			at = path + "." + key.(string)
		}
		tok, err := dec.Token()
		if err != nil {
			return nil, false
		}
		piece := wire.Object{"jsonPath": at}
		switch v := tok.(type) {
		case json.Delim:
			var ok bool
			pieces, ok = cutValues(dec, at, v == '[', pieces)
			if !ok {
				return nil, false
			}
			continue
		case string:
			pieces = append(pieces, wire.Object{"jsonPath": at, "stringValue": v, "willContinue": true})
			piece["stringValue"] = ""
		case json.Number:
			piece["numberValue"] = v
		case bool:
			piece["boolValue"] = v
		case nil:
			piece["nullValue"] = "NULL_VALUE"
		}
		pieces = append(pieces, piece)
	}
	dec.Token() // the end of the list or object
	return pieces, n > 0
}

// streamsArgs reports whether a Gemini request asks for arguments in pieces.
func streamsArgs(body []byte) bool {
	var w wire.Fields
	json.Unmarshal(body, &w) // unreadable arguments were refused before
	return string(w.Object("toolConfig").Object("functionCallingConfig").Get("streamFunctionCallArguments")) == "true"
}
