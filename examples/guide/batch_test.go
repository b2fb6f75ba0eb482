package guide

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

type Sentiment struct {
	Label string `json:"label" jsonschema:"positive or negative"`
}

func Example_batch() {
	reviews := []string{"Works well.", "Broke on day two.", "I love it."}
	model := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if req.Messages[len(req.Messages)-1].Text() == reviews[1] {
			return script.Say(`{"label":"negative"}`)
		}
		return script.Say(`{"label":"positive"}`)
	})))
	agent := &pawl.Agent{Model: model, Instructions: "Classify the review."}
	engine := &durable.Engine{Journal: new(store.MemoryJournal)} // or sqlite.Open("batch.db", nil)

	labels := make([]string, len(reviews))
	slots := make(chan struct{}, 2) // two requests at once
	var wg sync.WaitGroup
	for i, text := range reviews {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			// The id of the row names the run: a second start asks only for new rows.
			run := engine.Runner(fmt.Sprint("review-", i), agent)
			v, _, err := pawl.Into[Sentiment](context.Background(), run, llm.User(text))
			if labels[i] = v.Label; err != nil {
				labels[i] = err.Error()
			}
		})
	}
	wg.Wait()
	fmt.Println(labels)

	// Output:
	// [positive negative positive]
}
