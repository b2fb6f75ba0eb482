package suite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/tools/outside"
)

// matrix.go: variants as the product of axes.

// point is a value of an axis: a key of an agent's file.
type point struct {
	As    string       `json:"as"`
	Value outside.JSON `json:"value"`
}

// exclusion is the key of a matrix that is no axis.
const exclusion = "exclude"

// matrix returns the variants of the matrix, without the excluded ones. A variant is named after
// its points, in the order of the names of the axes.
func (l *loading) matrix() []map[string]outside.JSON {
	axes := map[string][]point{}
	names := slices.Sorted(maps.Keys(l.suite.File.Matrix))
	names = slices.DeleteFunc(names, func(name string) bool { return name == exclusion })
	for _, axis := range names {
		axes[axis] = l.points(axis)
	}
	excluded := l.excluded(axes)

	products := []map[string]point{{}}
	for _, axis := range names {
		var longer []map[string]point
		for _, one := range products {
			for _, p := range axes[axis] {
				next := maps.Clone(one)
				next[axis] = p
				longer = append(longer, next)
			}
		}
		products = longer
	}

	var all []map[string]outside.JSON
	for _, one := range products {
		isExcluded := func(e map[string]string) bool { return fits(one, e) }
		if len(one) > 0 && !slices.ContainsFunc(excluded, isExcluded) {
			all = append(all, variantOf(names, one))
		}
	}
	if len(all) == 0 {
		l.suite.Report("matrix", "model: [{as: luna, value: openai:gpt-6-luna}]", "the matrix has no variant")
	}
	return all
}

// variantOf returns the variant of a product.
func variantOf(axes []string, points map[string]point) map[string]outside.JSON {
	out := map[string]outside.JSON{}
	var words []string
	for _, axis := range axes {
		words = append(words, points[axis].As)
		out[axis] = points[axis].Value
	}
	name, _ := json.Marshal(strings.Join(words, "-")) // a text has no errors
	out["name"] = name
	return out
}

// points reads the values of an axis.
func (l *loading) points(axis string) (all []point) {
	at := "matrix." + axis
	const hint = "a list of {as: WORD, value: VALUE}"
	if err := jsonform.Read(l.suite.File.Matrix[axis], &all); err != nil {
		l.suite.Report(at, hint, "this is no axis: "+err.Error())
		return nil
	}
	seen := map[string]bool{}
	for i, p := range all {
		place := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case !idForm.MatchString(p.As):
			l.suite.Report(place, hint, fmt.Sprintf("%q is no word for a value: %s", p.As, idHint))
		case seen[p.As]:
			l.suite.Report(place, "rename one of them", "two values are named "+p.As)
		case p.Value == nil:
			l.suite.Report(place, hint, "the key value is missing")
		}
		seen[p.As] = true
	}
	return all
}

// excluded reads the products that are no variants. Each states the words of some axes.
func (l *loading) excluded(axes map[string][]point) (all []map[string]string) {
	text := l.suite.File.Matrix[exclusion]
	if text == nil {
		return nil
	}
	if err := jsonform.Read(text, &all); err != nil {
		l.suite.Report("matrix.exclude", "a list of {AXIS: WORD}", "this is no list of products: "+err.Error())
		return nil
	}
	for i, one := range all {
		place := fmt.Sprintf("matrix.exclude[%d]", i)
		if len(one) == 0 {
			l.suite.Report(place, "{AXIS: WORD}", "this would exclude every variant")
		}
		for _, axis := range slices.Sorted(maps.Keys(one)) {
			var words []string
			for _, p := range axes[axis] {
				words = append(words, p.As)
			}
			switch {
			case axes[axis] == nil:
				l.suite.Report(place, nearest.Hint(axis, slices.Sorted(maps.Keys(axes))), "there is no axis "+axis)
			case !slices.Contains(words, one[axis]):
				l.suite.Report(place, nearest.Hint(one[axis], words),
					fmt.Sprintf("the axis %s has no value %s", axis, one[axis]))
			}
		}
	}
	return all
}

// fits reports whether a product has all words of an exclusion.
func fits(points map[string]point, words map[string]string) bool {
	for axis, word := range words {
		if points[axis].As != word {
			return false
		}
	}
	return true
}
