package recording_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/recording"
	"github.com/pawl-go/pawl/script"
)

// A run is recorded, and played again without the provider. The error of a request that was not
// recorded shows the nearest one.
func Example() {
	sim, err := pawltest.NewSimulator(script.New(script.Say("Oslo.")), nil)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	ask := func(question string, o *openai.Options) (*pawl.Result, error) {
		return (&pawl.Agent{Model: openai.NewChat("m", o)}).Run(ctx, llm.User(question))
	}
	rec := new(recording.Recorder)
	if _, err := ask("The capital of Norway?", &openai.Options{BaseURL: sim.URL, Key: "sk-secret", HTTP: rec}); err != nil {
		panic(err)
	}
	sim.Close()
	file, err := rec.Recording().JSON()
	if err != nil {
		panic(err)
	}

	// begin play
	r, err := recording.Parse(file)
	if err != nil {
		panic(err)
	}
	player := &openai.Options{BaseURL: "http://nowhere.test/v1", Key: "none", HTTP: recording.Play(r)}
	// end play
	_, err = ask("The capital of Sweden?", player)
	var miss *recording.Miss
	if errors.As(err, &miss) {
		for _, d := range miss.Differs {
			fmt.Printf("%s: recorded %s, now %s\n", d.Path, d.Recorded, d.Now)
		}
	}
	res, err := ask("The capital of Norway?", player)
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Text())
	// Output:
	// messages[0].content: recorded "The capital of Norway?", now "The capital of Sweden?"
	// Oslo.
}
