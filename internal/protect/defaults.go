package protect

import (
	_ "embed"
	"strings"
)

//go:embed places.txt
var places string

// Default is a place that is protected by default.
type Default struct {
	Place  string // a path at any depth; * stands for any part of a name
	Starts string // the program that starts or follows it, and what it does
	Source string // where that is documented: an address, or a page of this project
	Group  string // the heading in places.txt
	Hidden bool   // it cannot be read either
}

// Defaults returns the places of places.txt in their order.
func Defaults() (list []Default) {
	group := ""
	for line := range strings.Lines(places) {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			if heading, ok := strings.CutPrefix(line, "# "); ok {
				group = heading
			}
			continue
		}
		place, hidden := strings.CutPrefix(fields[0], "!")
		list = append(list, Default{
			Place:  place,
			Starts: fields[1],
			Source: fields[2],
			Group:  group,
			Hidden: hidden,
		})
	}
	return list
}
