package site

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// Index is the search index in the page. search.js computes the same as Search.
type Index struct {
	Pages []Entry `json:"pages"`
	// Words has, by stem, pairs of a page and the weight of the word in it.
	Words map[string][][2]float64 `json:"words"`
}

// Entry is a page of the index.
type Entry struct {
	Target    string `json:"target"`
	Title     string `json:"title"`
	Reference bool   `json:"reference"`
}

// NewIndex returns an empty index.
func NewIndex() *Index { return &Index{Words: map[string][][2]float64{}} }

var (
	word    = regexp.MustCompile(`[\p{L}\p{N}_]+`)
	ignored = strings.Fields("a an and are as at be by do does for from how i in is it my of on or that the there to use what with you your can")
)

// stems returns the stems of the words of a text.
func stems(text string) []string {
	var all []string
	for _, w := range word.FindAllString(strings.ToLower(text), -1) {
		if !slices.Contains(ignored, w) {
			all = append(all, stem(w))
		}
	}
	return all
}

// stem removes an ending of English, so that "streams" finds "streaming".
func stem(w string) string {
	for _, end := range []string{"ations", "ation", "ings", "ing", "als", "al", "ers", "er", "ed", "es", "s", "e"} {
		if s, ok := strings.CutSuffix(w, end); ok && len(s) > 3 {
			return s
		}
	}
	return w
}

// Add adds a page. A word in the title counts like many in the text, and in a heading like some. A
// text that repeats a word often gains little.
func (x *Index) Add(target, title, text string, reference bool) {
	counts := map[string]float64{}
	for line := range strings.Lines(text) {
		weight := 1.0
		if strings.HasPrefix(line, "#") {
			weight = 4
		}
		for _, s := range stems(line) {
			counts[s] += weight
		}
	}
	length := 0.0
	for _, n := range counts {
		length += n
	}
	for s, n := range counts {
		counts[s] = n * 2.2 / (n + 1.2*(0.25+0.75*length/900))
	}
	for _, s := range stems(title) {
		counts[s] += 4
	}
	for s, n := range counts {
		x.Words[s] = append(x.Words[s], [2]float64{float64(len(x.Pages)), math.Round(n*100) / 100})
	}
	x.Pages = append(x.Pages, Entry{target, title, reference})
}

// Search returns the pages for a question, the best first.
func (x *Index) Search(question string) []Entry {
	score := make([]float64, len(x.Pages))
	for _, s := range stems(question) {
		found := x.Words[s]
		for _, f := range found {
			score[int(f[0])] += f[1] * math.Log(1+float64(len(x.Pages))/float64(len(found)))
		}
	}
	var all []int
	for i := range score {
		if x.Pages[i].Reference {
			score[i] *= 0.7
		}
		if score[i] > 0 {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		switch {
		case score[a] > score[b]:
			return -1
		case score[a] < score[b]:
			return 1
		}
		return 0
	})
	var entries []Entry
	for _, i := range all {
		entries = append(entries, x.Pages[i])
	}
	return entries
}
